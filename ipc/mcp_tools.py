"""Tools of MCP servers, as manifests pin them: the digest of what a server says of a tool, and the call of one.

`gateway import mcp` writes the digest, and workers compare it before they call the tool; both use this one function.
"""

from collections.abc import Mapping
from typing import Any, Final

from ipc.texts.canonical import canonical_bytes, sha256_hex

PINNED_MEMBERS = ("name", "description", "inputSchema")
"""Members of a listed tool that its digest covers: what a person read before the tool was put in force. Annotations
and titles are not believed, and so not pinned."""
CALL_ID: Final = 1
"""The id of the message that calls the tool, in each conversation with a server."""


def tool_digest(tool: Mapping[str, Any]) -> str:
    """`sha256:<hex>` over the canonical JSON of a tool's pinned members, as `tools/list` gives them.

    A member that the server leaves out, or gives as null, is absent. Raises NotCanonical for a tool whose numbers or
    texts have no canonical form.
    """
    members = {name: tool[name] for name in PINNED_MEMBERS if tool.get(name) is not None}
    return sha256_hex(canonical_bytes(members))


def call_message(name: str, arguments: Mapping[str, Any]) -> str:
    """The message `tools/call` (JSON-RPC 2.0) in canonical JSON. Raises NotCanonical."""
    params = {"name": name, "arguments": arguments}
    return canonical_bytes({"jsonrpc": "2.0", "id": CALL_ID, "method": "tools/call", "params": params}).decode()
