"""What came of earlier trials, so that a run goes on where the last one ended: lines of JSON in `build/`.

A change that was found stays found while its file, and the test that found it, are what they were. One that survived is
tried again as soon as any test or helper has changed.
"""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from mutants.changes import Change

DEADLINE = "deadline"
COLLECTION = "collection"
SURVIVED = ""


@dataclass(frozen=True)
class Outcome:
    """Of one trial. `by` is what found the change: the id of a test, `deadline`, `collection`, or nothing at all."""

    name: str
    by: str
    source: str
    tests: str

    @property
    def has_survived(self) -> bool:
        return self.by == SURVIVED


class Kept:
    """Outcomes of one tree. `file` is written line by line, so that nothing is lost with a run that is ended."""

    def __init__(self, file: Path, root: Path) -> None:
        self._file = file
        self._root = root
        self._all_tests = _digest(sorted((root / "tests").rglob("*.py")))
        self._outcomes: dict[str, Outcome] = {}
        if file.is_file():
            for line in file.read_text().splitlines():
                outcome = Outcome(**json.loads(line))
                self._outcomes[outcome.name] = outcome

    def outcome(self, change: Change) -> Outcome | None:
        """What is known of a change and still holds."""
        known = self._outcomes.get(change.name)
        if known is None or (known.source, known.tests) != (self._source(change), self._tests(known.by)):
            return None
        return known

    def note(self, change: Change, by: str) -> Outcome:
        """Write down what came of a trial."""
        outcome = Outcome(change.name, by, self._source(change), self._tests(by))
        self._outcomes[change.name] = outcome
        self._file.parent.mkdir(parents=True, exist_ok=True)
        with self._file.open("a") as file:
            file.write(json.dumps(asdict(outcome)) + "\n")
        return outcome

    def _source(self, change: Change) -> str:
        return _digest([self._root / change.path])

    def _tests(self, by: str) -> str:
        found_by = self._root / by.partition("::")[0]
        return _digest([found_by]) if by and found_by.is_file() else self._all_tests


def _digest(paths: Iterable[Path]) -> str:
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in paths)).hexdigest()[:16]
