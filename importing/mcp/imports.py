"""All tools of one server: which get a manifest, which file stays, and which are left out and why."""

from dataclasses import dataclass, field

from importing.folder import ImportFolder
from importing.mcp.making import McpTarget, ToolManifest, made_of
from importing.mcp.tools import ListedServer, ListedTool
from importing.refusal import LeftOut
from importing.steps import ImportSteps
from importing.words import one_line, snake
from ipc.mcp_tools import tool_digest
from ipc.texts.canonical import NotCanonical


@dataclass
class ImportedTools:
    """The result of an import. `kept` are files that are there, `changed` those of them whose tool is another now."""

    made: list[ToolManifest] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    left_out: list[tuple[str, str]] = field(default_factory=list)


def imported_tools(
    server: ListedServer, folder: ImportFolder, target: McpTarget, *, over: bool
) -> ImportedTools:  # fmt: skip
    """Make the manifests; nothing is written yet."""
    result = ImportedTools()
    taken: set[str] = set()
    steps = ImportSteps(target.url)
    for tool in server.tools:
        steps.at = tool.name
        try:
            action_id = _action_id(tool, folder, target, taken)
            name = f"{action_id}.yaml"
            if name in folder.names and not over:
                result.kept.append(name)
                if not _is_pinned(tool, folder, action_id):
                    result.changed.append(name)
            else:
                result.made.append(made_of(tool, action_id, target, steps))
            taken.add(action_id)
        except LeftOut as reason:
            result.left_out.append((_shown(tool.name), str(reason)))
    result.left_out += ((_shown(name), one_line(reason, 200)) for name, reason in server.refused)
    return result


def _shown(name: str) -> str:
    return one_line(name, 60) or "a tool without a name"


def _action_id(tool: ListedTool, folder: ImportFolder, target: McpTarget, taken: set[str]) -> str:
    """`files_` and `read_text_file` as `files_read_text_file`. Raises LeftOut, since a number would depend on the
    order in which the server lists its tools."""
    action_id = snake(f"{target.prefix}_{tool.name}" if target.prefix else tool.name)
    if not action_id or folder.is_reserved(action_id):
        raise LeftOut("its name makes no id of an action")
    if action_id in taken:
        raise LeftOut(f"another tool has its id {action_id}")
    return action_id


def _is_pinned(tool: ListedTool, folder: ImportFolder, action_id: str) -> bool:
    """True if the file of this action pins the tool as the server lists it now."""
    try:
        digest = tool_digest(tool.members)
    except NotCanonical:
        return False
    return digest in folder.text_of(action_id)
