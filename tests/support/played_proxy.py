"""Something that listens where a front expects the egress proxy, and says what a test wants."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import trio

Converse = Callable[[trio.SocketStream], Awaitable[None]]


@asynccontextmanager
async def proxy_that(converse: Converse) -> AsyncIterator[str]:
    """The URL of something that listens and does this with each connection."""

    async def serve(stream: trio.SocketStream) -> None:
        async with stream:
            try:
                await converse(stream)
            except trio.BrokenResourceError:
                return

    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.serve_listeners, serve, [listener])
        yield f"http://127.0.0.1:{listener.socket.getsockname()[1]}"
        nursery.cancel_scope.cancel()


def saying(answer: bytes) -> Converse:
    """It hears something, and answers this."""

    async def converse(stream: trio.SocketStream) -> None:
        await stream.receive_some(65536)
        await stream.send_all(answer)

    return converse
