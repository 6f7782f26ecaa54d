"""Tools of a server as an import sees them."""

from typing import Any

import msgspec


class ListedTool(msgspec.Struct, frozen=True):
    """One tool. `members` are those that its digest covers; `hints` are the server's annotations, not believed."""

    name: str
    members: dict[str, Any]
    hints: dict[str, bool]


class ListedServer(msgspec.Struct, frozen=True):
    """A server's own name, the revision of the protocol, its tools in its order, and name and reason of each one that
    is no tool of the protocol."""

    name: str
    revision: str
    tools: list[ListedTool]
    refused: list[tuple[str, str]]
