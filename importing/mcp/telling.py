"""The words of an import for the terminal: each tool on a line, what is left out and why, and the next steps."""

import shlex
from collections.abc import Iterator
from pathlib import Path

from importing.lines import MAX_NAMES, left_out_lines, names_of
from importing.mcp.imports import ImportedTools
from importing.mcp.making import McpTarget
from importing.mcp.tools import ListedServer
from importing.words import one_line

_WIDEST_ID, _WIDEST_TOOL = 48, 48


def told_tools(server: ListedServer, result: ImportedTools, target: McpTarget, out: Path) -> str:
    """Everything that a person has to know after an import."""
    return "\n".join(_lines(server, result, target, out)) + "\n"


def _lines(server: ListedServer, result: ImportedTools, target: McpTarget, out: Path) -> Iterator[str]:
    count = len(server.tools) + len(server.refused)
    name = one_line(server.name, 60) or "a server without a name"
    yield f"{name}: {count} tool{'s' * (count != 1)} · MCP {one_line(server.revision, 20)} · {target.url}"
    wide = min(max((len(one.action_id) for one in result.made), default=0), _WIDEST_ID)
    long = min(max((len(one.tool) for one in result.made), default=0), _WIDEST_TOOL)
    for one in result.made:
        hints = f"says {one.hints}" if one.hints else ""
        yield f"  {one.action_id:<{wide}}  {one.tool:<{long}}  {target.risk:<8}  {hints}".rstrip()
    yield from left_out_lines(result.left_out)
    reviewed = [one.action_id for one in result.made if one.notes]
    if reviewed:
        yield f"to review: {names_of(reviewed)}; `# Review:` in each file says why"
    if result.changed:
        yield f"differ from the server now: {names_of(result.changed)}; --force writes over them"
    unchanged = [name for name in result.kept if name not in result.changed]
    if unchanged:
        yield f"kept as they are: {names_of(unchanged)}; --force writes over them"
    if not result.made:
        yield "No manifest was written."
        return
    made = len(result.made)
    yield f"{made} manifest{'s' * (made != 1)} in {shlex.quote(str(out))}/. Nothing is in force yet. Next:"
    yield "  read each file: description and hints are the server's; hints are not believed"
    if target.has_token:
        yield f"  put into the secrets file: {target.secret}"
    yield "  gateway check --config gateway.toml --connect"
    granted = [one.action_id for one in result.made[:MAX_NAMES]] + ["…"] * (made > MAX_NAMES)
    yield f"  gatectl policy grant PRINCIPAL {' '.join(granted)}"
