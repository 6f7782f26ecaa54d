"""`python -m witness.main run|key --state DIR …`: behind `gateway witness`, which has opened the listening socket.

Serves `POST /add-checkpoint` (C2SP tlog-witness) until SIGTERM or SIGINT.
"""

import argparse
import os
import socket
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Final

import trio
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from setproctitle import setproctitle

from frontend.http.answers import Answer
from frontend.http.requests import Request
from frontend.telemetry.logs import configure_logs, log
from ipc.process.exits import Exit
from ipc.process.parent import refuse_core_dumps
from ipc.process.private_files import PrivateFileError
from ipc.process.stderr import own_stderr
from notary.tree.checkpoint import NoteRefused
from notary.tree.notes import read_verifier_key
from serving.limits import ServingLimits
from serving.server import serve_until_signal
from serving.tls import TlsFilesWrong, add_tls_arguments, given_certificate
from witness.folder import OwnKey, held, make_key, read_key, read_records
from witness.judge import TEXT_TYPE, Judge, LogKeys
from witness.submissions import MAX_BODY

PATH: Final = "/add-checkpoint"
LIMITS: Final = ServingLimits(max_connections=64, max_body=MAX_BODY, send_seconds=10)
MAX_KEYS_FILE: Final = 1 << 20


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point. Returns an exit code of ipc/process/exits.py; the sentence that explains it goes to standard
    error."""
    options = _options(arguments)
    run: Callable[[argparse.Namespace], int] = options.run
    try:
        return run(options)
    except PrivateFileError as error:
        print(f"gateway: {error}", file=sys.stderr)
        return error.exit_code
    except (NoteRefused, TlsFilesWrong) as error:
        print(f"gateway: {error}.", file=sys.stderr)
        return Exit.CONFIG


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="gateway witness", allow_abbrev=False)
    commands = parser.add_subparsers(required=True)
    serving, showing = commands.add_parser("run"), commands.add_parser("key")
    for command in (serving, showing):
        command.add_argument("--state", type=Path, required=True)
        command.add_argument("--name")
    serving.add_argument("--listen-fd", type=int, required=True)
    serving.add_argument("--address", required=True)
    serving.add_argument("--log-key", type=Path, action="append", required=True)
    add_tls_arguments(serving)
    serving.set_defaults(run=_run)
    showing.set_defaults(run=_show_key)
    return parser.parse_args(arguments)


def _run(options: argparse.Namespace) -> int:
    setproctitle("gateway: witness")
    own_stderr()
    configure_logs("witness")
    refuse_core_dumps()
    os.umask(0o077)
    os.set_inheritable(options.listen_fd, False)
    certificate = given_certificate(options)
    logs = read_logs(options.log_key)
    with held(options.state):
        key = _own_key(options)
        judge = Judge(options.state, key, logs, read_records(options.state, logs))
        log.info("serving", address=options.address, key=key.public.text, logs=sorted(logs))
        sock = socket.socket(fileno=options.listen_fd)
        trio.run(serve_until_signal, "witness", sock, responder(judge), LIMITS, certificate)
    return Exit.OK


def _show_key(options: argparse.Namespace) -> int:
    key = read_key(options.state)
    if key is None:
        with held(options.state):
            key = _own_key(options)
    _check_name(key, options.name)
    print(key.public.text)
    return Exit.OK


def _own_key(options: argparse.Namespace) -> OwnKey:
    """The key, made at the first start. The caller must hold the folder. Raises KeyFileError."""
    key = read_key(options.state)
    if key is None:
        key = make_key(options.state, options.name or f"{socket.gethostname()}/witness")
    _check_name(key, options.name)
    return key


def _check_name(key: OwnKey, name: str | None) -> None:
    if name not in (None, key.name):
        raise PrivateFileError(f"--name {name!a}: the key that is there is of {key.name!a}. Leave it out.", Exit.CONFIG)


def read_logs(files: Sequence[Path]) -> LogKeys:
    """Verifier keys of logs from these files, one a line. Raises KeyFileError, NoteRefused."""
    keys: dict[str, list[Ed25519PublicKey]] = {}
    for file in files:
        try:
            text = file.read_bytes()[:MAX_KEYS_FILE].decode()
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "not a text"
            raise PrivateFileError(f"{file}: can't be read: {why}.", Exit.CONFIG) from None
        for number, line in enumerate(text.splitlines(), 1):
            if line.strip() and not line.startswith("#"):
                try:
                    name, key = read_verifier_key(line)
                except NoteRefused as error:
                    raise NoteRefused(f"{file}:{number}  {error}") from None
                keys.setdefault(name, []).append(key)
    if not keys:
        raise NoteRefused("the files of --log-key name no log")
    return keys


def responder(judge: Judge) -> Callable[[Request], Awaitable[Answer]]:
    """The handler of requests."""

    async def respond(request: Request) -> Answer:
        if request.path != PATH:
            return Answer(404, b"there is nothing here but POST /add-checkpoint\n", content_type=TEXT_TYPE)
        if request.method != "POST":
            return Answer(405, b"use POST\n", (("Allow", "POST"),), TEXT_TYPE)
        said = await judge.add_checkpoint(await request.read_body())
        return Answer(said.status, said.body.encode(), content_type=said.content_type)

    return respond


if __name__ == "__main__":
    sys.exit(main())
