"""A process of a gateway that tries to escape: `-m tests.support.escape_inside FOLDER MODULE ARGUMENTS…`.

MODULE is the product's, in a gateway that runs. In the moment in which it builds its walls it forks once for each step
of its table: each child builds the very same walls and tries its step. The results go to FOLDER, one file for each
kind of process, and the process continues normally.
"""

import json
import os
import runpy
import sys
import time
from pathlib import Path
from typing import Any

from ipc.walls.confining import Confinement, Walls
from ipc.walls.given import NETWORK_NAMESPACE
from tests.support.escape_program import tried
from tests.support.escape_table import STEPS
from tests.support.escape_walled import OWN, WALLED

FACTS = "facts.json"
"""The escape table of each kind of process."""
WAIT_SECONDS = 60.0
_confine = Confinement.confine


def kind_of(walls: Walls, module: str) -> str | None:
    """Return the kind of process that builds these walls, or None for a process whose table stands elsewhere."""
    if module in ("broker.main", "exporter.main"):
        return module.removesuffix(".main")
    if walls.has_files:
        return "template"
    if walls.checks_owners:
        return "notary" if NETWORK_NAMESPACE in walls.namespaces else "deliverer"
    if walls.has_environment:
        return "front"
    return None if walls.limits else "compiler"


def _confined(confinement: Confinement, folder: Path, module: str) -> None:
    kind = kind_of(confinement._walls, module)
    if kind is not None and not (folder / f"{kind}.json").exists():
        facts: dict[str, Any] = json.loads((folder / FACTS).read_text())[kind] | {"parent": os.getppid()}
        _wait_for(Path(facts["ledger"]))
        aside = folder / f"{kind}.{os.getpid()}"
        aside.write_text(json.dumps({name: tried(confinement, name, facts) for name in WALLED[kind]}))
        aside.rename(folder / f"{kind}.json")
    _confine(confinement)


def _wait_for(file: Path) -> None:
    """A missing file can't be refused."""
    deadline = time.monotonic() + WAIT_SECONDS
    while not file.exists() and time.monotonic() < deadline:
        time.sleep(0.01)


def main() -> None:
    """Run the program, and try at its walls."""
    folder = Path(sys.argv[1])
    STEPS.update((row.name, row.step) for row in OWN)
    module, sys.argv = sys.argv[2], sys.argv[2:]
    setattr(Confinement, "confine", lambda confinement: _confined(confinement, folder, module))  # noqa: B010
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
