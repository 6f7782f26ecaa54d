"""The tools of an MCP server, as it lists them: over HTTP, or from a program that runs for as long as that takes.

The official package speaks the protocol. Guarantees bounds on time, tools and memory, that a program ends with all
that it started, and that it gets no variable of the environment but those that every program needs.
"""

import logging
import os
import resource
import shlex
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import anyio
import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import Tool, ToolAnnotations
from pydantic import ValidationError

from importing.mcp.sifting import SiftedMessages
from importing.mcp.tools import ListedServer, ListedTool
from importing.refusal import ImportRefused
from importing.words import one_line
from ipc.process.exits import Exit
from ipc.process.parent import adopt_orphans

SECONDS: Final = 30.0
MAX_TOOLS: Final = 1000
MAX_PAGES: Final = 32
"""The bound of a call that looks for its tool (workers/host/tool_calls.py)."""
MAX_MEMORY: Final = 2 << 30
"""Bytes of address space: a server that writes without end ends this process, not the machine."""
MAX_ORPHANS: Final = 100
"""Rounds in which orphans of orphans are ended."""
HINTS: Final = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")


def list_tools(url: str, command: str | None, token: str | None) -> ListedServer:
    """Ask the server at `url`, or `command` where there is one. Raises ImportRefused."""
    logging.disable()  # the package logs what a server sends
    words = None if command is None else _words(command)
    whom, hint = (url, "") if words is None else (words[0], " Run it by hand to see what it says.")
    # The bridge, behind which the program will be, speaks the revisions with a handshake (bridge/endpoint.py).
    way = (_over_http(url, token), "auto") if words is None else (_from_program(words), "legacy")
    try:
        return anyio.run(_listed, *way)
    except BaseException as error:
        reason = _innermost(error)
        if isinstance(reason, ImportRefused):
            raise reason from None
        if isinstance(reason, TimeoutError):
            sentence = f"{whom} did not list its tools within {SECONDS:.0f} seconds.{hint}"
            raise ImportRefused(sentence, Exit.UNAVAILABLE) from None
        if not isinstance(reason, Exception):
            raise
        said = one_line(str(reason), 200).rstrip(".") or type(reason).__name__
        if isinstance(reason, ValidationError):
            said = "an answer does not follow the protocol"
        raise ImportRefused(f"{whom} does not list its tools: {said}.{hint}", Exit.UNAVAILABLE) from None


def _innermost(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _words(command: str) -> list[str]:
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise ImportRefused(f"--command can't be read: {error}.", Exit.USAGE) from None
    if not words:
        raise ImportRefused("--command is empty.", Exit.USAGE)
    return words


def _bound_memory() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))


@asynccontextmanager
async def _over_http(url: str, token: str | None) -> AsyncGenerator[Any]:
    _bound_memory()
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=SECONDS) as http,
        streamable_http_client(url, http_client=http) as streams,
    ):
        yield streams


@asynccontextmanager
async def _from_program(words: list[str]) -> AsyncGenerator[Any]:
    adopt_orphans()
    try:
        with open(os.devnull, "w") as nowhere:  # noqa: ASYNC230 - opening it never waits
            async with stdio_client(StdioServerParameters(command=words[0], args=words[1:]), errlog=nowhere) as streams:
                _bound_memory()  # now: the program keeps the limits that it was started with
                yield streams
    finally:
        _end_orphans()


def _end_orphans() -> None:
    """End the processes that a program left behind: they are children of this process, which has no others."""
    children = Path(f"/proc/self/task/{os.getpid()}/children")
    for _ in range(MAX_ORPHANS):
        for pid in map(int, children.read_text().split()):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


async def _listed(transport: Any, mode: str) -> ListedServer:
    with anyio.fail_after(SECONDS):
        messages = SiftedMessages(MAX_TOOLS + 1)
        async with Client(messages.over(transport), cache=None, mode=mode) as client:
            messages.revision = client.protocol_version
            tools: list[ListedTool] = []
            cursor: str | None = None
            for _ in range(MAX_PAGES):
                page = await client.list_tools(cursor=cursor)
                tools += map(_of_tool, page.tools)
                cursor = page.next_cursor
                if len(tools) + len(messages.refused) > MAX_TOOLS:
                    break
                if cursor is None:
                    info = client.server_info
                    name = "" if info is None else info.name
                    return ListedServer(name, client.protocol_version, tools, messages.refused)
    raise ImportRefused(f"the server lists more than {MAX_TOOLS} tools, or more than {MAX_PAGES} pages of them.")


def _of_tool(tool: Tool) -> ListedTool:
    members = {"name": tool.name, "description": tool.description, "inputSchema": tool.input_schema}
    return ListedTool(tool.name, members, _hints(tool.annotations))


def _hints(annotations: ToolAnnotations | None) -> dict[str, bool]:
    given = {} if annotations is None else annotations.model_dump(by_alias=True, exclude_none=True)
    return {name: given[name] for name in HINTS if isinstance(given.get(name), bool)}
