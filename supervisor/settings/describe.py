"""The configuration file as JSON Schema 2020-12, for editors: made of the table that checks it
(supervisor/settings/schema.py).

Guarantees that what the gateway accepts fits the schema; what only shows between several settings, or on the disk, is
`gateway check`'s to say.
"""

from typing import Any

import msgspec

from ipc.settings import Settings
from supervisor.settings import schema
from supervisor.settings.sections import certificates, issuers
from supervisor.settings.toml_lines import Path

DIALECT = "https://json-schema.org/draft/2020-12/schema"

_REQUIRED: dict[Path, tuple[str, ...]] = {
    (): ("state_dir", "public_base_url"),
    ("identity", "peercred", "principals", "*"): ("principal",),
    ("identity", "issuers", "*"): tuple(issuers.REQUIRED),
    ("identity", "issuers", "*", "principals", "*"): ("principal",),
    ("identity", "certificates", "*"): tuple(certificates.REQUIRED),
    ("operators", "*"): ("name",),
    ("webhooks", "*"): ("name", "url"),
    ("evidence", "witnesses", "*"): ("name", "url", "key"),
}
_MORE: dict[Path, dict[str, Any]] = {
    ("operators", "*"): {"oneOf": [{"required": [source]} for source in ("api_key_sha256", "api_key_file", "api_key")]},
    ("webhooks", "*"): {"oneOf": [{"required": [source]} for source in ("secret_file", "secret")]},
    ("secrets",): {"dependentRequired": {"age_identity_file": ["file"]}},
}


def configuration_schema() -> dict[str, Any]:
    """The whole document."""
    defaults = msgspec.to_builtins(Settings(state_dir="", public_base_url=""))
    identity = defaults["identity"]
    identity["peercred"] = {"allow_unmapped": identity.pop("allow_unmapped")}
    head = {"$schema": DIALECT, "title": "Configuration of the action gateway", "description": "docs/configuration.md"}
    return head | _described(schema.SCHEMA, (), defaults)


def _described(node: schema.Node, path: Path, default: Any) -> dict[str, Any]:
    if isinstance(node, schema.Leaf):
        form = dict(node.kind.form)
        is_said = isinstance(default, str | int | float) and default != "" and "not" not in form
        return form | {"default": default} if is_said else form
    if isinstance(node, schema.TableArray):
        return {"type": "array", "items": _described(node.row, (*path, "*"), None)}
    if isinstance(node, schema.Names):
        value = _described(node.value, (*path, "*"), None)
        return {"type": "object", "propertyNames": dict(node.key.form), "additionalProperties": value}
    inner = default if isinstance(default, dict) else {}
    fields = {name: _described(child, (*path, name), inner.get(name)) for name, child in node.fields.items()}
    table: dict[str, Any] = {"type": "object", "additionalProperties": False, "properties": fields}
    if path in _REQUIRED:
        table["required"] = list(_REQUIRED[path])
    return table | _MORE.get(path, {})
