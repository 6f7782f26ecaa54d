"""How long the files of tests take, as measured: `times.txt` beside this file, of which the slow ones and the shares of
processes (shares.py) are derived. A file that it does not name counts as nothing.

    PYTEST_ADDOPTS=--durations=0 make test-all >all; PYTEST_ADDOPTS=--durations=0 make test >fast
    python -m tests.support.times all fast

writes it anew, from runs on two processors that have nothing else to do.
"""

import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

RECORD = Path(__file__).with_name("times.txt")
LEAST_SECONDS = 1.0
"""Files that take less are not named."""
SLOW_TEST_SECONDS = 0.5
SLOW_FILE_SECONDS = 60.0
DURATION = re.compile(r"([0-9.]+)s (?:setup|call|teardown) +(tests/\S+?\.py)::(.+)")


class Time(NamedTuple):
    """The tests of a file, and the seconds that they take with many examples of each property and with few."""

    tests: int
    all: float
    fast: float

    @property
    def is_slow(self) -> bool:
        """Whether `make test` leaves the file out: its tests take more than half a second each, or more than a minute
        together."""
        return self.fast > min(SLOW_FILE_SECONDS, SLOW_TEST_SECONDS * self.tests)


def recorded(record: Path = RECORD) -> dict[str, Time]:
    """Path of a file from the root -> its time."""
    lines = (line.split() for line in record.read_text().splitlines())
    return {path: Time(int(tests), float(all_), float(fast)) for path, tests, all_, fast in lines}


def cuts(seconds: Mapping[str, float], count: int) -> list[str]:
    """The paths at which the second and every further of `count` processes begins, so that all take as long."""
    whole, before, found = sum(seconds.values()), 0.0, list[str]()
    for path in sorted(seconds):
        if before >= whole * (len(found) + 1) / count:
            found.append(path)
        before += seconds[path]
    return found


def measured(lines: Iterable[str]) -> dict[str, tuple[int, float]]:
    """Path of a file -> its tests and their seconds, from what `pytest --durations=0` prints."""
    names: dict[str, set[str]] = {}
    seconds: dict[str, float] = {}
    for line in lines:
        if found := DURATION.fullmatch(line.strip()):
            names.setdefault(found[2], set()).add(found[3])
            seconds[found[2]] = seconds.get(found[2], 0) + float(found[1])
    return {path: (len(names[path]), seconds[path]) for path in seconds}


def main(all_output: str, fast_output: str) -> None:
    """Write the record. A slow file has no fast run; where the fast run was the longer one, the machine was busy."""
    every, fast = (measured(Path(output).read_text().splitlines()) for output in (all_output, fast_output))
    with RECORD.open("w") as record:
        for path in sorted(every | fast):
            tests, seconds = every.get(path) or fast[path]
            least = min(seconds, fast.get(path, (0, seconds))[1])
            if seconds >= LEAST_SECONDS:
                record.write(f"{path} {tests} {seconds:.0f} {least:.0f}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
