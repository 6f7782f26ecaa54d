"""`python -m console.main …`: behind `gateway console`, which has opened the listening socket.

Serves the operators' page and forwards what it asks of the gateway, until SIGTERM or SIGINT. No part of a gateway: it
can be ended at any time, and holds nothing that outlives a request but the keys of a link (console/sign_in.py).
"""

import argparse
import os
import socket
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec
import trio
from setproctitle import setproctitle

from console.assets import load_page
from console.endpoints import MAX_BODY, endpoint_for
from console.forwarding import Forwarder
from console.guard import SECURITY_HEADERS, Guard
from console.sign_in import PATH as SIGN_IN
from console.sign_in import SignInLink
from frontend.http.answers import Answer, json_answer
from frontend.http.requests import Request
from frontend.telemetry.logs import configure_logs, log
from ipc.process.exits import Exit
from ipc.process.parent import die_with_parent, leave_signals_to_parent, refuse_core_dumps
from ipc.process.stderr import own_stderr
from ipc.walls.privileges import refuse_new_privileges
from serving.limits import ServingLimits
from serving.server import serve_until_signal
from serving.tls import TlsFilesWrong, add_tls_arguments, given_certificate

ABOUT: Final = "/console.json"
"""Path of the page's first question: the URL that proofs must name."""
LIMITS: Final = ServingLimits(max_connections=128, max_body=MAX_BODY, send_seconds=30)


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point. Returns an exit code of ipc/process/exits.py."""
    options = _options(arguments)
    setproctitle("gateway: console")
    if options.parent is not None:
        die_with_parent(options.parent)
        leave_signals_to_parent()
    own_stderr()
    configure_logs("console")
    refuse_core_dumps()
    refuse_new_privileges()
    os.umask(0o077)
    os.set_inheritable(options.listen_fd, False)
    try:
        certificate = given_certificate(options)
    except TlsFilesWrong as wrong:
        print(f"gateway console: {wrong}.", file=sys.stderr)
        return Exit.CONFIG
    sock = socket.socket(fileno=options.listen_fd)
    # A console that is started again finds no file: the link has been read.
    link = SignInLink(options.sign_in) if options.sign_in is not None and options.sign_in.exists() else None
    respond = responder(
        Guard(options.origin), load_page(), Forwarder(options.gateway), options.public_base_url, link
    )  # fmt: skip
    log.info("serving", address=options.origin, gateway=options.gateway, public_base_url=options.public_base_url)
    trio.run(serve_until_signal, "console", sock, respond, LIMITS, certificate)
    return Exit.OK


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="gateway console", allow_abbrev=False)
    parser.add_argument("--listen-fd", type=int, required=True)
    for name in ("--origin", "--gateway", "--public-base-url"):
        parser.add_argument(name, required=True)
    parser.add_argument("--parent", type=int)
    parser.add_argument("--sign-in", type=Path)
    add_tls_arguments(parser)
    return parser.parse_args(arguments)


def responder(
    guard: Guard, page: Mapping[str, Answer], forwarder: Forwarder, public_base_url: str, link: SignInLink | None
) -> Callable[[Request], Awaitable[Answer]]:
    """The handler of requests."""
    about = json_answer(200, {"public_base_url": public_base_url})

    async def answered(request: Request) -> Answer:
        is_page = request.path in page
        if (refused := guard.refusal(request, is_page=is_page)) is not None:
            return refused
        if request.method == "GET" and (is_page or request.path == ABOUT):
            return page.get(request.path, about)
        if link is not None and (request.method, request.path) == ("POST", SIGN_IN):
            return link.used(await request.read_body(MAX_BODY))
        endpoint = endpoint_for(request.method, request.path)
        if endpoint is None:
            return json_answer(404, {"error": "not_found"})
        answer = await forwarder.forward(endpoint, request)
        if request.method != "GET":
            log.info("forwarded", method=request.method, path=request.path, status=answer.status)
        return answer

    async def respond(request: Request) -> Answer:
        answer = await answered(request)
        return msgspec.structs.replace(answer, headers=(*answer.headers, *SECURITY_HEADERS))

    return respond


if __name__ == "__main__":
    sys.exit(main())
