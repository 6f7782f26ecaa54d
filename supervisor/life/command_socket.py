"""The socket in the state directory through which `gateway status|ps|reload|drain` and `gateway ledger seal` ask the
running supervisor.

One line of JSON in, one out, and the connection is closed; a bounded number of them, each with a deadline. Commands
that take long never have all places, so that `status` does not wait for them. SECURITY: only the gateway's own user and
root are heard (peer credentials, besides the modes of socket and folder), and none of the gateway's own processes: a
worker that was taken over has no business here.
"""

import json
import os
import socket
import struct
from collections.abc import Awaitable, Callable, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final, NoReturn

import msgspec
import trio

from ipc.process.exits import Exit
from supervisor.life.asking import ANSWER_SECONDS, NAME, QUESTION_SECONDS, SLOW_SECONDS
from supervisor.logs import log
from supervisor.refusal import Refused

MAX_LINE: Final = 4096
MAX_CONNECTIONS: Final = 8
MAX_SLOW: Final = 6
"""Commands that take long, at once; one more is refused."""
_CREDENTIALS = struct.Struct("3i")
_MOST_GENERATIONS = 64

Question = Mapping[str, object]
"""A command: its word in `do`, and what it needs beside it."""
Answer = Callable[[Question], Awaitable[Mapping[str, object]]]


def listen_for_commands(state_dir: Path, cleanup: ExitStack) -> socket.socket:
    """Open the socket; it is closed and its file removed at the end. The folder must be held by this process, so that
    a file that is there is a dead gateway's. Raises Refused."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    cleanup.callback(sock.close)
    folder = os.open(state_dir, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    umask = os.umask(0o177)
    try:
        with suppress(FileNotFoundError):
            os.unlink(state_dir / NAME)
        # By way of the descriptor: the path itself may be longer than the kernel takes.
        sock.bind(f"/proc/self/fd/{folder}/{NAME}")
        sock.listen(MAX_CONNECTIONS)
    except OSError as error:
        raise Refused(Exit.NO_PERMISSION, f"cannot listen on {state_dir / NAME}: {error.strerror}.") from None
    finally:
        os.umask(umask)
        os.close(folder)
    cleanup.callback(_remove, state_dir / NAME)
    return sock


def _remove(path: Path) -> None:
    with suppress(OSError):
        path.unlink()


async def answer_commands(sock: socket.socket, answers: Mapping[str, Answer]) -> NoReturn:
    """Serve until cancelled. `answers` by the word that a question has in `do`."""
    listening = trio.socket.from_stdlib_socket(sock)
    places, slow = trio.Semaphore(MAX_CONNECTIONS), trio.Semaphore(MAX_SLOW)
    async with trio.open_nursery() as nursery:
        while True:
            await places.acquire()
            try:
                connection, _ = await listening.accept()
            except OSError as error:
                # Out of descriptors, for example: it must not spin, and the next try may work.
                log.warning("a command's connection could not be accepted", cause=error.strerror)
                places.release()
                await trio.sleep(1.0)
                continue
            nursery.start_soon(_serve, connection, answers, places, slow)


async def _serve(
    connection: trio.socket.SocketType, answers: Mapping[str, Answer], places: trio.Semaphore, slow: trio.Semaphore
) -> None:
    try:
        with connection, suppress(OSError, trio.BrokenResourceError):  # it has hung up: an interrupted command, say
            if not _may_ask(connection):
                return
            line = b""
            with trio.move_on_after(QUESTION_SECONDS):
                line = await _line(connection)
            question = _question(line)
            told = await _told(answers, question, slow)
            with trio.move_on_after(QUESTION_SECONDS):
                await trio.SocketStream(connection).send_all(json.dumps(told).encode() + b"\n")
    finally:
        places.release()


async def _told(answers: Mapping[str, Answer], question: Question, slow: trio.Semaphore) -> Mapping[str, object]:
    word = str(question.get("do"))
    if word not in answers:
        return {"error": "no such command"}
    if word not in SLOW_SECONDS:
        return await _answered(answers[word], question)
    try:
        slow.acquire_nowait()
    except trio.WouldBlock:
        return {"error": "too many commands are under way"}
    try:
        return await _answered(answers[word], question)
    finally:
        slow.release()


async def _answered(answer: Answer, question: Question) -> Mapping[str, object]:
    with trio.move_on_after(ANSWER_SECONDS):
        return await answer(question)
    return {"error": f"no answer within {ANSWER_SECONDS:.0f} s"}


async def _line(connection: trio.socket.SocketType) -> bytes:
    data = b""
    while b"\n" not in data and len(data) < MAX_LINE:
        chunk = await connection.recv(MAX_LINE)
        if not chunk:
            break
        data += chunk
    return data.partition(b"\n")[0]


def _question(line: bytes) -> Question:
    """The JSON object of a line; an empty one if the line has none. A lone surrogate, which json.loads takes, can't be
    encoded in a message to a child."""
    try:
        return msgspec.json.decode(line, type=dict[str, object])
    except (ValueError, RecursionError):
        return {}


def _may_ask(connection: trio.socket.SocketType) -> bool:
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    pid, uid, _ = _CREDENTIALS.unpack(raw)
    if uid in (0, os.geteuid()) and not _is_below_us(pid):
        return True
    log.warning("a command is refused: only the gateway's user and root may give one", pid=pid, uid=uid)
    return False


def _is_below_us(pid: int) -> bool:
    """True if a process descends from this one; orphans become its children, so every descendant is found."""
    ours = os.getpid()
    for _ in range(_MOST_GENERATIONS):
        if pid <= 1:
            return False
        try:
            pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            return True  # gone, or hidden: nothing is known of it
        if pid == ours:
            return True
    return True
