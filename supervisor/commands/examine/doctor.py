"""`gateway doctor`: the walls around processes that this machine supports, and the mend for missing ones."""

import argparse
import json
import os
from pathlib import Path

from ipc.process.exits import Exit
from ipc.settings import Settings
from ipc.walls.given import OWN_USER, WALLS, Given
from ipc.walls.kinds import ALWAYS, KINDS, MENDS
from ipc.walls.landlock import abi
from supervisor.children.walls import find_walls
from supervisor.commands import Commands
from supervisor.commands.named import named_settings
from supervisor.systemd.cgroups import delegated_folder

_OK, _MISSING, _NOT_NEEDED = "ok", "missing", "not needed"


def add(commands: Commands) -> None:
    """Put `doctor` beside the other commands."""
    doctor = commands.add_parser(
        "doctor",
        help="report which walls around processes this machine supports",
        description="Try every wall that processes of the gateway have, in processes that are thrown away, and say for "
        "each kind of process what it would get. Run it as the user, and under the service manager, that the gateway "
        "runs under. Exit code 1 when a wall is missing.",
    )
    doctor.add_argument("--config", type=Path, metavar="FILE", help="configuration (TOML), for sandbox.user")
    doctor.set_defaults(state_dir=None)
    doctor.add_argument("--json", action="store_true", help="print the rows as JSON")
    doctor.set_defaults(run=_doctor)


def _doctor(options: argparse.Namespace) -> int:
    settings = named_settings(options) if options.config else Settings(state_dir="", public_base_url="")
    if settings is None:
        return Exit.CONFIG
    given = find_walls(settings)
    table = rows(given, is_root=os.geteuid() == 0)
    limits = "delegated: workers get memory, pids and cpu limits" if delegated_folder() else "not delegated: no limits"
    if options.json:
        listed = [dict(zip(("process", "wall", "found", "mend"), row, strict=True)) for row in table]
        print(json.dumps({"walls": listed, "landlock_abi": abi(), "cgroup": limits}, indent=2))
    else:
        width = max(len(row[0]) for row in table), max(len(row[1]) for row in table)
        for process, wall, state, mend in table:
            print(f"{process:{width[0]}}  {wall:{width[1]}}  {state:10}  {mend}".rstrip())
        print(f"\nlandlock ABI {abi()}; cgroup v2 {limits}")
    return Exit.FAILED if given.missing else Exit.OK


def rows(given: Given, *, is_root: bool) -> list[tuple[str, str, str, str]]:
    """(kind of process, wall, finding, mend) for every wall of every kind."""
    listed = []
    for process, walls in KINDS.items():
        listed += [(process, wall, _OK, "") for wall in ALWAYS]
        for wall in (one for one in WALLS if one in walls):
            state = _MISSING if wall in given.missing else _OK
            if wall == OWN_USER and not is_root:
                state = _NOT_NEEDED
            listed.append((process, wall, state, MENDS[wall] if state == _MISSING else ""))
    return listed
