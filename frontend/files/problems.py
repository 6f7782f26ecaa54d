"""Problems of a manifest, each with its place and its mend.

Owns the form in which problems are collected and shown. Guarantees that text from a file is shortened and escaped
before it is shown. Never decides whether something is a problem.
"""

import difflib
import json
from collections.abc import Iterable

import msgspec

from ipc.texts.visible import has_overlay

_SHOWN_CHARACTERS = 60
_SAID_CHARACTERS = 600


class FileProblem(msgspec.Struct, frozen=True, order=True):
    """One thing to mend. `line` counts from 1, 0 for the whole file; `message` and `mend` are sentences."""

    file: str
    line: int
    field: str
    """Dotted path of the field, `` for the file itself."""
    message: str
    mend: str

    def __str__(self) -> str:
        """`/etc/gateway/actions/payment.yaml:9  resource_limits.fuel = 0: must be 1 or more. Raise it.`"""
        file = _escaped(self.file)
        place = f"{file}:{self.line}" if self.line else file
        return f"{place}  {self.message} {self.mend}".rstrip()


class Report:
    """Collects the problems of one file."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.digest = ""
        """`sha256:<hex>` of the bytes that were read; empty before."""
        self.problems: list[FileProblem] = []
        self._noted: set[FileProblem] = set()

    def add(self, line: int, field: str, message: str, mend: str) -> None:
        """Note one problem; the same one twice counts once. Names of fields in it may be anything: they are escaped."""
        problem = FileProblem(self.file, line, printable(field), printable(message), printable(mend))
        if problem not in self._noted:
            self._noted.add(problem)
            self.problems.append(problem)

    def wrong(self, line: int, field: str, value: object, rule: str, mend: str) -> None:
        """Note that `field` holds `value` and that `rule` forbids it: `fuel = 0: must be 1 or more.`"""
        self.add(line, field, f"{field} = {shown(value)}: {rule}.", mend)


def shown(value: object) -> str:
    """A value of a file for people: JSON in ASCII, shortened, so that no character of it can disturb a terminal."""
    text = json.dumps(value, default=str)
    return text if len(text) <= _SHOWN_CHARACTERS else text[: _SHOWN_CHARACTERS - 1] + "…"


def printable(text: str) -> str:
    """A text of another process, for people: one line, shortened, without characters that could disturb a terminal."""
    return _escaped(text if len(text) <= _SAID_CHARACTERS else text[: _SAID_CHARACTERS - 1] + "…")


def _escaped(text: str) -> str:
    if text.isprintable() and not has_overlay(text):
        return text
    return "".join(one if one.isprintable() and not has_overlay(one) else ascii(one)[1:-1] for one in text)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A mend for an unknown name: the closest known one, else the whole list."""
    names = sorted(known)
    if not names:
        return "Remove it."
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    if close:
        return f"Did you mean {close[0]}?"
    return f"Known here: {', '.join(names)}."
