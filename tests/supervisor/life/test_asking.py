"""Commands and their gateway, where one of the two closes the connection without an answer."""

import json
import socket
import threading
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import trio

from ipc.process.exits import Exit
from supervisor.life.asking import NAME, ask_gateway
from supervisor.life.command_socket import MAX_CONNECTIONS, Question, answer_commands, listen_for_commands
from supervisor.refusal import Refused

ROUNDS = 300
"""Closed before the question, while it is written, and after it: each comes often enough in so many."""


def test_a_connection_that_is_closed_unasked_is_a_refusal_whether_or_not_the_question_was_written(
    tmp_path: Path,
) -> None:  # fmt: skip
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / NAME))
        listener.listen(8)

        def hang_up() -> None:
            for _ in range(ROUNDS):
                listener.accept()[0].close()

        thread = threading.Thread(target=hang_up, daemon=True)
        thread.start()
        for _ in range(ROUNDS):
            with pytest.raises(Refused, match="may not be asked") as refused:
                ask_gateway(tmp_path, "status")
            assert refused.value.code == Exit.NO_PERMISSION
        thread.join(60)


async def test_a_command_that_is_interrupted_before_its_answer_ends_nothing(
    tmp_path: Path, nursery: trio.Nursery
) -> None:
    has_hung_up = trio.Event()

    async def answer(question: Question) -> Mapping[str, object]:
        await has_hung_up.wait()
        return {"told": question["do"]}

    with ExitStack() as cleanup:
        sock = listen_for_commands(tmp_path, cleanup)
        sock.setblocking(False)
        nursery.start_soon(answer_commands, sock, {"reload": answer})
        for _ in range(3):
            async with await trio.open_unix_socket(str(tmp_path / NAME)) as interrupted:
                await interrupted.send_all(b'{"do": "reload"}\n')
        has_hung_up.set()
        told = await trio.to_thread.run_sync(ask_gateway, tmp_path, "reload")
        assert told == {"told": "reload"}
        nursery.cancel_scope.cancel()


async def test_commands_that_take_long_leave_places_for_those_that_do_not(
    tmp_path: Path, nursery: trio.Nursery
) -> None:
    async def never(_: Question) -> Mapping[str, object]:
        return await trio.sleep_forever()

    async def at_once(_: Question) -> Mapping[str, object]:
        return {"state": "serving"}

    async def asked(word: str) -> dict[str, Any]:
        return await trio.to_thread.run_sync(ask_gateway, tmp_path, word)

    with ExitStack() as cleanup:
        sock = listen_for_commands(tmp_path, cleanup)
        sock.setblocking(False)
        nursery.start_soon(answer_commands, sock, {"reload": never, "status": at_once})
        for _ in range(MAX_CONNECTIONS):
            slow = await trio.open_unix_socket(str(tmp_path / NAME))
            cleanup.callback(slow.socket.close)
            await slow.send_all(b'{"do": "reload"}\n')
        assert await asked("status") == {"state": "serving"}
        assert await asked("reload") == {"error": "too many commands are under way"}
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("line", [b'{"do": "seal", "sealed": "\\ud800"}', b"[" * 4000, b"[1]", b'{"do": "\xff"}', b""])
async def test_a_line_that_no_message_could_carry_is_no_question(
    tmp_path: Path, nursery: trio.Nursery, line: bytes
) -> None:
    async def answer(question: Question) -> Mapping[str, object]:
        return {"told": question["sealed"]}

    with ExitStack() as cleanup:
        sock = listen_for_commands(tmp_path, cleanup)
        sock.setblocking(False)
        nursery.start_soon(answer_commands, sock, {"seal": answer})
        async with await trio.open_unix_socket(str(tmp_path / NAME)) as asking:
            await asking.send_all(line + b"\n")
            told = b"".join([part async for part in asking])
        assert json.loads(told) == {"error": "no such command"}
        nursery.cancel_scope.cancel()
