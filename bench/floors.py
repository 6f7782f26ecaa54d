"""The floors: an echo on stock hypercorn, one on bare h11 and trio, and an upstream; each a process of its own.

`python -m bench.floors hypercorn|h11|upstream --fd N`: serves a listening socket until it is killed. All read the whole
body and answer with a body of the size that an execution result has; the upstream waits first for as many milliseconds
as the last part of its path says.
"""

import argparse
import socket
from functools import partial
from typing import Any

import h11
import hypercorn.trio
import trio
from hypercorn.config import Config

ANSWER = b'{"echo":"' + b"x" * 420 + b'"}'
HEADERS = [(b"content-type", b"application/json"), (b"content-length", str(len(ANSWER)).encode())]


async def application(scope: Any, receive: Any, send: Any) -> None:
    """The smallest ASGI application that reads its body."""
    if scope["type"] != "http":
        raise RuntimeError("this floor has no lifespan")
    while (await receive()).get("more_body"):
        pass
    await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
    await send({"type": "http.response.body", "body": ANSWER})


async def h11_connection(stream: trio.SocketStream, *, is_upstream: bool = False) -> None:
    """One connection, driven by one task, one send an answer."""
    connection = h11.Connection(h11.SERVER)
    seconds = 0.0
    async with stream:
        while True:
            event = connection.next_event()
            if event is h11.NEED_DATA:
                connection.receive_data(await stream.receive_some(65536))
            elif isinstance(event, h11.Request):
                seconds = int(event.target.rpartition(b"/")[2]) / 1000 if is_upstream else 0.0
            elif isinstance(event, h11.EndOfMessage):
                if seconds:
                    await trio.sleep(seconds)
                head = connection.send(h11.Response(status_code=200, headers=HEADERS))
                body = connection.send(h11.Data(data=ANSWER))
                end = connection.send(h11.EndOfMessage())
                await stream.send_all((head or b"") + (body or b"") + (end or b""))
                if connection.our_state is h11.MUST_CLOSE:
                    return
                connection.start_next_cycle()
            elif isinstance(event, h11.ConnectionClosed):
                return


async def serve_h11(sock: socket.socket, *, is_upstream: bool) -> None:
    """Bare h11 and trio."""
    listener = trio.SocketListener(trio.socket.from_stdlib_socket(sock))
    await trio.serve_listeners(partial(h11_connection, is_upstream=is_upstream), [listener])


async def serve_hypercorn(fd: int) -> None:
    """Stock hypercorn on trio, access log off."""
    config = Config()
    config.bind = [f"fd://{fd}"]
    config.accesslog = None
    config.errorlog = None
    config.keep_alive_max_requests = 10**9
    await hypercorn.trio.serve(application, config, mode="asgi")


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=("hypercorn", "h11", "upstream"))
    parser.add_argument("--fd", type=int, required=True)
    arguments = parser.parse_args()
    if arguments.kind == "hypercorn":
        trio.run(serve_hypercorn, arguments.fd)
    else:
        sock = socket.socket(fileno=arguments.fd)
        trio.run(partial(serve_h11, sock, is_upstream=arguments.kind == "upstream"))


if __name__ == "__main__":
    main()
