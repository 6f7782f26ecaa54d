"""Files of `gateway new action NAME`: a manifest with a schema, the right to call it, a configuration to try it.

Guarantees that an existing manifest is never overwritten, that `gateway check --dev` accepts the result, and that only
the grant changes in an existing `data.json`. Owns the files that every new action needs, for all kinds of providers.
"""

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ipc.process.exits import Exit
from supervisor.commands.create.init_production import CONFIGURATION, CONTRIB
from supervisor.dev.private_files import keep_private, write_private
from supervisor.refusal import Refused

PRINCIPAL = "dev:anonymous"
"""The caller without a provider of identities: `identity.provider = "none"` of `gateway dev`."""
TEMPLATE = CONTRIB / "templates" / "action.yaml"
_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}", re.ASCII)

_CONFIGURATION = """\
# For gateway dev --config; docs/configuration.md has every setting. Paths are taken from the folder of this file.
manifests_dir = "actions"
policy_dir = "policy"
"""

_NEXT = """\
{folder}/actions/{name}.yaml is the action: read it, change it.
{folder}/policy/data.json lets {principal} call it.

gateway check --dev --config {quoted}
gateway dev --config {quoted}
gatectl execute {name} text=hello          # in another terminal
"""


def new_action(folder: Path, name: str) -> str:
    """Write everything; return what to tell. Raises Refused."""
    shown, manifest = folder, manifest_place(folder, name)
    with_action(folder, name, lambda: write_private(manifest, TEMPLATE.read_text().replace("NAME", name)))
    quoted = shlex.quote(str(shown / CONFIGURATION))
    return _NEXT.format(folder=shown, name=name, principal=PRINCIPAL, quoted=quoted)


def manifest_place(folder: Path, name: str) -> Path:
    """Where the manifest of a new action goes: nothing is there yet. Raises Refused."""
    if _NAME.fullmatch(name) is None:
        raise Refused(Exit.USAGE, f"{name!a} is no name for an action: lower-case letters, digits and _.")
    manifest = folder.absolute() / "actions" / f"{name}.yaml"
    if manifest.exists():
        raise Refused(Exit.CONFIG, f"{manifest} is there already; nothing was changed. Choose another name.")
    return manifest


def with_action(folder: Path, name: str, write: Callable[[], None]) -> None:
    """Have `write` write what is new in this folder, and see to configuration, policy and the right to call it. Raises
    Refused."""
    folder = folder.absolute()
    data = folder / "policy" / "data.json"
    try:
        for one in (folder / "actions", data.parent):
            one.mkdir(mode=0o700, parents=True, exist_ok=True)
        keep_private(data.parent / "gateway.rego", (CONTRIB / "policy" / "gateway.rego").read_text)
        granted = _granted(keep_private(data, (CONTRIB / "policy" / "data.json").read_text), data, name)
        write()
        write_private(data, granted)
        keep_private(folder / CONFIGURATION, lambda: _CONFIGURATION)
    except OSError as error:
        raise Refused(Exit.NO_PERMISSION, f"{error.filename or folder} can't be written: {error.strerror}.") from None


def _granted(text: str, file: Path, name: str) -> str:
    """The policy's data with the grant. Sinks are the manifests' and not written down. Raises Refused."""
    try:
        data: dict[str, Any] = json.loads(text)
        entry = data.setdefault("acl", {}).setdefault(PRINCIPAL, {"actions": []})
        entry["actions"] = sorted({*entry.setdefault("actions", []), name})
    except (ValueError, RecursionError, AttributeError, TypeError):
        raise Refused(Exit.CONFIG, f"{file} is no data of a policy; nothing was changed. See docs/policy.md.") from None
    return json.dumps(data, indent=2) + "\n"
