"""Standard input and output as the streams of an MCP server, a line a message (`mcp_server/frames.py`).

Guarantees that standard output carries the protocol alone: descriptor 1 leads to standard error while it serves. Holds
a line in memory only up to its bound. The end of either stream ends the session. Needs anyio on asyncio.
"""

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import CancelledError
from contextlib import asynccontextmanager, suppress

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage

from gateway_client.mcp_server.frames import MAX_LINE, line_of, messages_of

Received = MemoryObjectReceiveStream[SessionMessage | Exception]
Sent = MemoryObjectSendStream[SessionMessage]
CHUNK = 65_536
TAIL = 1024
"""Bytes kept of the end of a line that is too long: its id may stand there."""


@asynccontextmanager
async def stdio() -> AsyncIterator[tuple[Received, Sent]]:
    """The two streams for `Server.run`."""
    wire_in, wire_out = os.dup(0), os.dup(1)
    for wire in (wire_in, wire_out):
        os.set_blocking(wire, True)  # or what has not come yet looks like the end
    os.dup2(2, 1)
    to_server, received = anyio.create_memory_object_stream[SessionMessage | Exception]()
    sent, from_server = anyio.create_memory_object_stream[SessionMessage]()
    turn = anyio.Lock()

    async def put(line: bytes) -> None:
        try:
            async with turn:
                await anyio.to_thread.run_sync(_write, wire_out, line)
        except OSError:  # the host is gone
            to_server.close()

    async def take(line: bytes) -> None:
        for message in messages_of(line):
            await (put(message) if isinstance(message, bytes) else to_server.send(message))

    async def end() -> None:
        to_server.close()

    def read(loop: asyncio.AbstractEventLoop) -> None:
        with suppress(RuntimeError, CancelledError, anyio.ClosedResourceError, anyio.BrokenResourceError):
            for line in lines(wire_in):
                asyncio.run_coroutine_threadsafe(take(line), loop).result()
            asyncio.run_coroutine_threadsafe(end(), loop).result()

    async def write() -> None:
        async with from_server:
            async for message in from_server:
                await put(line_of(message))

    # A thread that waits in read(2) ends with the process alone: one of anyio's would be waited for.
    threading.Thread(target=read, args=(asyncio.get_running_loop(),), daemon=True).start()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(write)
        yield received, sent
    os.dup2(wire_out, 1)


def lines(descriptor: int) -> Iterator[bytes]:
    """Lines until the end. A line over MAX_LINE loses its middle, and what is left is still over it."""
    held = bytearray()
    while chunk := _read(descriptor):
        *whole, rest = chunk.split(b"\n")
        for part in whole:
            yield bytes(_bounded(held, part))
            held.clear()
        _bounded(held, rest)
    if held:
        yield bytes(held)


def _bounded(held: bytearray, part: bytes) -> bytearray:
    held += part
    if len(held) > MAX_LINE + 2 * TAIL:
        del held[MAX_LINE:-TAIL]
    return held


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, CHUNK)
    except OSError:  # a terminal that is gone
        return b""


def _write(descriptor: int, line: bytes) -> None:
    view = memoryview(line)
    while view:
        view = view[os.write(descriptor, view) :]
