"""Rules between the section `mcp` of a manifest and its other sections."""

from collections.abc import Callable

from frontend.manifests.expressions import TemplateRefused
from frontend.manifests.manifest import Manifest
from frontend.manifests.mcp import TOOL_METHOD, TOOL_MODULE, McpTool
from frontend.manifests.urls import UrlTemplate
from frontend.manifests.yamltree import Path
from ipc.network.domains import matches

_RESERVED = frozenset({"accept", "content-type", "mcp-method", "mcp-name", "mcp-protocol-version", "mcp-session-id"})
"""Headers that the protocol gives its own values."""

Note = Callable[[Path, str, str], None]
"""Notes a problem: its place, the message, the mend."""


def check_mcp(manifest: Manifest, note: Note) -> None:
    """Note every rule about tools that the manifest breaks."""
    if manifest.mcp is None:
        if manifest.provider_module_digest == TOOL_MODULE:
            note(("provider_module_digest",), f"{TOOL_MODULE} needs the section mcp.", "Add the section.")
        return
    _check_parts(manifest, note)
    _check_host(manifest, manifest.mcp, note)
    for index, secret in enumerate(manifest.secrets):
        header = None if secret.way is None else secret.way.header_name
        if header is not None and header.lower() in _RESERVED:
            path = ("secrets", index, "inject", "header")
            note(path, f"the header {header} is one that the MCP protocol sets.", "Use another header.")


def _check_parts(manifest: Manifest, note: Note) -> None:
    if manifest.provider_module_digest != TOOL_MODULE:
        message = f"the section mcp needs provider_module_digest = {TOOL_MODULE}."
        note(("provider_module_digest",), message, f"Write {TOOL_MODULE}, or remove the section.")
    if "http" not in manifest.required_imports:
        note(("mcp",), "the section mcp needs the import http.", "Add http to required_imports.")
    if manifest.template is not None:
        note(("template",), "the section mcp makes the request, so that template would never be used.", "Remove one.")
    if manifest.egress.allowed_methods and TOOL_METHOD not in manifest.egress.allowed_methods:
        message = f"egress.allowed_methods does not have {TOOL_METHOD}, which calls a tool."
        note(("egress", "allowed_methods"), message, "Add it there.")
    schema = manifest.io.request_schema
    if schema is None or schema.get("type") != "object":
        message = "a tool takes an object of arguments, which io.request_schema does not ask for."
        note(("io", "request_schema"), message, "Write the tool's inputSchema there, with type: object.")
    if manifest.verifier_kind == "http_status":
        # SECURITY: a server answers 200 to a call that failed.
        message = "verifier_kind = http_status says nothing of a tool: a server answers 200 to a call that failed."
        note(("verifier_kind",), message, "Write unverifiable, or response_schema.")


def _check_host(manifest: Manifest, tool: McpTool, note: Note) -> None:
    if not tool.url:
        return
    try:
        url = UrlTemplate(tool.url)
    except TemplateRefused as error:
        note(("mcp", "url"), f"mcp.url: {error}.", error.mend)
        return
    if url.host is not None and not matches(url.host, manifest.egress.allowed_domains):
        message = f"mcp.url: {url.host} is not in egress.allowed_domains."
        note(("mcp", "url"), message, "Add it there, or correct the host.")
