"""Problems of a configuration: where, what is wrong, how to mend it. Collected all at once, shown in file order."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Problem:
    """One line for a person: `origin:line  text`.

    `origin` is a file, a flag or an environment variable; `line` counts from 1, 0 when there is none to point at.
    `rank` puts files before the environment, and the environment before flags.
    """

    origin: str
    line: int
    text: str
    rank: int = 0

    def __str__(self) -> str:
        place = f"{self.origin}:{self.line}" if self.line else self.origin
        return f"{place}  {self.text}"


def in_order(problems: Iterable[Problem]) -> list[Problem]:
    """Sorted by file and line, each problem once."""
    return sorted(set(problems), key=lambda problem: (problem.rank, problem.origin, problem.line, problem.text))


def report(problems: Iterable[Problem]) -> str:
    """Every problem on a line, then how many there are; ends with a newline."""
    lines = [str(problem) for problem in in_order(problems)]
    count = f"{len(lines)} problem{'' if len(lines) == 1 else 's'}, nothing started."
    return "\n".join([*lines, count, ""])
