"""Problems of a configuration: place, fault and mend. Collected all at once, shown in file order."""

import json
from collections.abc import Iterable

import msgspec
from msgspec.structs import replace

MAX_TOLD = 100
"""A report lists no more problems."""
_MAX_SHOWN = 60


class Problem(msgspec.Struct, frozen=True):
    """One line for a person: `origin:line  text mend`.

    `origin` is a file, a flag or an environment variable; `line` counts from 1; 0 stands for no line.
    `rank` puts files before the environment, and the environment before flags. `field` is the setting, or the part of
    another file, that it is about.
    """

    origin: str
    line: int
    text: str
    rank: int = 0
    field: str = ""
    mend: str = ""

    def __str__(self) -> str:
        place = f"{self.origin}:{self.line}" if self.line else self.origin
        return f"{place}  {self.text} {self.mend}".rstrip()


def in_order(problems: Iterable[Problem]) -> list[Problem]:
    """Sorted by file and line, each problem once."""
    return sorted(set(problems), key=lambda problem: (problem.rank, problem.origin, problem.line, str(problem)))


def report(problems: Iterable[Problem], end: str = "nothing started") -> str:
    """Every problem on a line, the first MAX_TOLD of very many, then the count and `end`."""
    lines = [str(problem) for problem in in_order(problems)]
    told = lines if len(lines) <= MAX_TOLD else [*lines[:MAX_TOLD], f"… and {len(lines) - MAX_TOLD} more."]
    count = f"{len(lines)} problem{'' if len(lines) == 1 else 's'}, {end}."
    return "\n".join([*told, count, ""])


def dotted(path: Iterable[str | int]) -> str:
    """A path as people write it: `operators[0].dpop_jkt`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{short(part)}" if text else short(part)
    return text


def short(text: str) -> str:
    """A text of a file for people: one line, shortened, escaped where it is not printable."""
    escaped = json.dumps(text, ensure_ascii=not text.isprintable())[1:-1]
    return escaped if len(escaped) <= _MAX_SHOWN else escaped[: _MAX_SHOWN - 1] + "…"


def as_warnings(warnings: Iterable[Problem]) -> str:
    """Every warning on a line; each ends with a newline."""
    return "".join(f"{replace(one, text=f'warning: {one.text}')}\n" for one in in_order(warnings))


def as_json(
    problems: Iterable[Problem], warnings: Iterable[Problem] = (), **more: dict[str, tuple[str, ...]]
) -> str:  # fmt: skip
    """The same for programs: `{"problems": [{file, line, field, message, mend}], "warnings": [the same]}`, in the same
    order, and `more` beside them."""
    told = {"problems": _rows(problems), "warnings": _rows(warnings)} | more
    return json.dumps(told, ensure_ascii=False, indent=2) + "\n"


def _rows(problems: Iterable[Problem]) -> list[dict[str, object]]:
    return [
        {"file": one.origin, "line": one.line, "field": one.field, "message": one.text, "mend": one.mend}
        for one in in_order(problems)
    ]
