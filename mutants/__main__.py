"""`python -m mutants [PATH…]`: try every change of the rooms, or of what begins with PATH, and tell which survive.

Exit 0: every survivor is in `mutants/accepted.txt`, and whatever is listed there survives. Exit 1 otherwise.
"""

import argparse
import os
import signal
import sys
from pathlib import Path

from mutants import accepted, rooms
from mutants.changes import Change, changes_of
from mutants.kept import Kept
from mutants.lines import constant_at, function_of, lines_around, lines_using
from mutants.trials import Baseline, Trials, trials

RESULTS = rooms.ROOT / "build" / "mutants" / "outcomes.jsonl"


def main(arguments: list[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="make mutants", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("only", nargs="*", help="begin of a path, like notary/operations; default: every room")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="trials at once")
    parser.add_argument("--anew", action="store_true", help="forget what earlier runs have found")
    parser.add_argument("--list", action="store_true", help="tell the changes and try none")
    options = parser.parse_args(arguments)
    only = options.only or [""]
    files = list(dict.fromkeys(file for one in only for file in rooms.files(one)))
    if not files:
        parser.error(f"no file of the rooms begins with {' or '.join(only)}")
    changes = [change for file in files for change in changes_of(file, (rooms.ROOT / file).read_bytes())]
    if options.list:
        print("\n".join(f"{change.path}:{change.line} {change.name}" for change in changes))
        return 0
    if options.anew:
        RESULTS.unlink(missing_ok=True)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # the copies go, and what was found stays
    accepts = accepted.read(accepted.LIST.read_text())
    kept = Kept(RESULTS, rooms.ROOT)
    # What no test has to notice takes longest, for all of its tests are run: it is tried after the others.
    _try(sorted(changes, key=lambda change: change.name in accepts), kept, options.jobs)
    return _tell(changes, set(files), kept, accepts)


def _try(changes: list[Change], kept: Kept, jobs: int) -> None:
    """Whatever is not known yet, room by room."""
    unknown = [change for change in changes if kept.outcome(change) is None]
    print(f"{len(changes)} changes, {len(unknown)} to be tried")
    if not unknown:
        return
    with trials(rooms.ROOT, jobs) as ready:
        for room in dict.fromkeys(rooms.room_of(change.path) for change in unknown):
            _try_room(ready, room, [change for change in unknown if rooms.room_of(change.path) == room], kept)


def _try_room(ready: Trials, room: str, changes: list[Change], kept: Kept) -> None:
    watched = dict.fromkeys(file for change in changes for file in [change.path, *_places_of(change)])
    before = ready.baseline(rooms.FOLDERS[room], watched)
    took = sum(spent for name, spent in before.seconds.items() if "::" not in name)
    print(f"{room}: {len(changes)} changes; its tests take {took:.0f} s without one", flush=True)
    for test in before.failed:
        print(f"  left out, it fails without any change: {test}", flush=True)
    tests = {change.name: _tests_of(change, before) for change in changes}
    for number, (change, by) in enumerate(ready.run(changes, tests, before.seconds), 1):
        kept.note(change, by)
        if not by:
            print(f"  {number}/{len(changes)} survived {change.path}:{change.line}  {change.after}", flush=True)


def _tests_of(change: Change, before: Baseline) -> list[list[str]]:
    """Arguments of pytest, in parts: the functions that run what is changed, the quickest first, or whole files where
    it is run as the module is loaded or in another process, and those that name the constant that is changed."""
    parts = rooms.tests_of(change.path)
    left_out = [f"--deselect={test}" for test in before.failed]
    if places := _places_of(change):
        run = set[str]().union(*(before.lines.tests_of(file, lines) for file, lines in places.items()))
        functions = sorted(run, key=lambda one: before.seconds.get(one, 0.0))
        functions = [one for one in functions if one not in map(function_of, before.failed)]
        constant = constant_at((rooms.ROOT / change.path).read_bytes(), change.line)
        naming = [file for part in parts for file in part if constant and constant in (rooms.ROOT / file).read_text()]
        parts = [[one for one in functions if one.partition("::")[0] in {*part} - {*naming}] for part in parts]
        parts = [naming, *parts]
    # What was added to the checkout since the copies were made is none of them.
    known = [[one for one in part if one in before.seconds] for part in parts]
    return [[*part, *left_out] for part in known if part]


def _places_of(change: Change) -> dict[str, set[int]]:
    """File -> lines that run what is changed: the statement around it, or those that use the constant that it sets.
    Nothing where every test of the room may notice."""
    source = (rooms.ROOT / change.path).read_bytes()
    if change.path in rooms.PROGRAMS:
        return {}
    if around := lines_around(source, change.line):
        return {change.path: around}
    places: dict[str, set[int]] = {}
    constant = constant_at(source, change.line)
    for file, text in rooms.naming(constant) if constant else ():
        lines = lines_using(text, constant or "")
        if lines is None:
            return {}
        if lines:
            places[file] = lines
    return places


def _tell(changes: list[Change], files: set[str], kept: Kept, accepts: dict[str, str]) -> int:
    """Survivors that are not listed, and what is listed and does not survive."""
    outcomes = {change.name: kept.outcome(change) for change in changes}
    survivors = [change for change in changes if (known := outcomes[change.name]) is not None and known.has_survived]
    unlisted = [change for change in survivors if change.name not in accepts]
    names = {change.name for change in survivors}
    stale = [name for name in accepts if name.partition(" ")[0] in files and name not in names]
    gone = [name for name in accepts if not Path(rooms.ROOT / name.partition(" ")[0]).is_file()]
    for change in unlisted:
        print(f"\n{change.path}:{change.line} survived: no test notices it\n{change.name}")
    for name in [*stale, *gone]:
        print(f"\nlisted in {accepted.LIST.name}, and found or not there any more: take it out of the list\n{name}")
    noticed = len(changes) - len(survivors)
    print(
        f"\n{len(changes)} changes: {noticed} found, {len(survivors) - len(unlisted)} accepted, "
        f"{len(unlisted)} survived"
    )
    return 1 if unlisted or stale or gone else 0


if __name__ == "__main__":
    sys.exit(main())
