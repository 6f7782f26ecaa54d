"""Starters of `gateway new action --from`: manifests of well-known services, each a folder with its tests.

A starter is a folder below `contrib/templates/starters` with `manifest.yaml`, whose first comment says what the action
does, and `test.yaml`. The folders are the only list of starters.
"""

from collections.abc import Callable
from pathlib import Path

from ipc.process.exits import Exit
from supervisor.commands.create.init_production import CONTRIB
from supervisor.commands.create.new_action import manifest_place, with_action
from supervisor.dev.private_files import write_private
from supervisor.refusal import Refused

STARTERS = CONTRIB / "templates" / "starters"

_NEXT = """\
{folder}/actions/{name}.yaml is the action: read it, and fill in what its comments say.
{folder}/actions/{name}.test.yaml has requests to try, and what is expected of them.
{folder}/policy/data.json lets dev:anonymous call it.

gateway check --dev --config {folder}/gateway.toml
gateway test actions {folder}/actions
"""


def listing() -> str:
    """A line for each starter: its name and what it does."""
    names = starters()
    width = max(map(len, names), default=0)
    return "".join(f"{name.ljust(width)}  {_summary(name)}\n" for name in names)


def starters() -> list[str]:
    """The names, sorted."""
    return sorted(path.parent.name for path in STARTERS.glob("*/manifest.yaml"))


def action_from(folder: Path, name: str, starter: str) -> str:
    """Write the action and its tests; what to tell. Raises Refused."""
    if starter not in starters():
        raise Refused(Exit.USAGE, f"there is no starter {starter!a}; gateway new action --list shows them.")
    manifest = manifest_place(folder, name)
    tests = manifest.with_suffix(".test.yaml")
    if tests.exists():
        raise Refused(Exit.CONFIG, f"{tests} is there already; nothing was changed. Choose another name.")
    with_action(folder, name, _writing(starter, name, manifest, tests))
    return _NEXT.format(folder=folder, name=name)


def _writing(starter: str, name: str, manifest: Path, tests: Path) -> Callable[[], None]:
    def write() -> None:
        write_private(tests, (STARTERS / starter / "test.yaml").read_text())
        text = (STARTERS / starter / "manifest.yaml").read_text()
        write_private(manifest, text.replace("action_id: NAME\n", f"action_id: {name}\n", 1))

    return write


def _summary(name: str) -> str:
    return (STARTERS / name / "manifest.yaml").read_text().partition("\n")[0].removeprefix("# ")
