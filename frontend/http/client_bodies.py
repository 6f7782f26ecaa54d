"""Bodies of the gateway's own HTTP requests: one to send, and an answer that is read up to a limit.

Guarantees that a request which fails half-way leaves no generator open: the HTTP client's bodies are asynchronous
generators, and it does not close them when the connection breaks while one is written, or when an answer is not read to
its end; trio reports each of them.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Self, cast

import httpcore


class AnswerTooLarge(Exception):
    """The answer has more bytes than the bound."""


class OutgoingBody:
    """Bytes that are read in one part. The caller gives the length in a header of its own."""

    __slots__ = ("_content", "_is_read")

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._is_read = False

    def __aiter__(self) -> Self:
        self._is_read = False
        return self

    async def __anext__(self) -> bytes:
        if self._is_read:
            raise StopAsyncIteration
        self._is_read = True
        return self._content


async def read_at_most(response: httpcore.Response, bound: int) -> bytes:
    """The whole answer. Raises AnswerTooLarge, and what the client raises where the connection breaks."""
    content, size = [], 0
    async with aclosing(cast(AsyncGenerator[bytes], response.aiter_stream())) as parts:
        async for part in parts:
            content.append(part)
            size += len(part)
            if size > bound:
                raise AnswerTooLarge
    return b"".join(content)
