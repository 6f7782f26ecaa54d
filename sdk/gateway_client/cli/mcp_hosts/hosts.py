"""The hosts whose configuration file gatectl knows: where it lies and how a server stands in it."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ENTRY = "gateway"
"""The server's name in every host's file."""


@dataclass(frozen=True, slots=True)
class McpHost:
    """One host."""

    name: str
    title: str
    file: str
    """Below the home directory, or, with `is_config`, below the directory of configurations (XDG)."""
    servers: str
    """The member of the file that has the servers."""
    is_config: bool = False
    kind: tuple[tuple[str, str], ...] = ()
    """Members of the entry which say that the host starts a command."""

    def path(self, environ: Mapping[str, str]) -> Path:
        """The file of the user whose environment this is."""
        home = Path(environ.get("HOME") or Path.home())
        if not self.is_config:
            return home / self.file
        base = environ.get("XDG_CONFIG_HOME", "")
        return (Path(base) if base.startswith("/") else home / ".config") / self.file


HOSTS = {
    one.name: one
    for one in (
        McpHost("cursor", "Cursor", ".cursor/mcp.json", "mcpServers"),
        McpHost("gemini", "Gemini CLI", ".gemini/settings.json", "mcpServers"),
        McpHost("vscode", "Visual Studio Code", "Code/User/mcp.json", "servers", True, (("type", "stdio"),)),
        McpHost("windsurf", "Windsurf", ".codeium/windsurf/mcp_config.json", "mcpServers"),
        McpHost("zed", "Zed", "zed/settings.json", "context_servers", True, (("source", "custom"),)),
    )
}


def is_ours(entry: Any) -> bool:
    """True if an entry starts `gatectl mcp`."""
    if not isinstance(entry, dict) or not isinstance(entry.get("command"), str):
        return False
    arguments = entry.get("args")
    return os.path.basename(entry["command"]) == "gatectl" and isinstance(arguments, list) and arguments[:1] == ["mcp"]


def entry_of(
    host: McpHost, found: Any, command: str, arguments: list[str], variables: dict[str, str]
) -> dict[str, Any]:
    """The entry to write: what the user has added to the one found stays, but for gatectl's own variables."""
    kept = found if isinstance(found, dict) else {}
    own = kept.get("env")
    strange = (
        {name: one for name, one in own.items() if not name.startswith("GATECTL_")} if isinstance(own, dict) else {}
    )
    entry = kept | dict(host.kind) | {"command": command, "args": arguments, "env": strange | variables}
    if not entry["env"] and "env" not in kept:
        del entry["env"]
    return entry
