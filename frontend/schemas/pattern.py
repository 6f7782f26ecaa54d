"""The parts of a parsed pattern of a schema, the limit of its size, and its refusal."""

from typing import TypeAlias

import msgspec

from frontend.schemas.characters import Ranges

MAX_CHARACTERS = 1000
MAX_REPETITION = 1000
MAX_STEPS = 4000
"""Characters that a pattern matches one after the other when every repetition is written out."""
MAX_DEPTH = 40


class PatternRefused(ValueError):
    """A pattern that may not be used: its fault, the character (from 1), and a mend."""

    def __init__(self, what: str, mend: str, position: int) -> None:
        super().__init__(what)
        self.mend = mend
        self.position = position


class CharacterStep(msgspec.Struct, frozen=True):
    """One character out of a set. `position`: where it stands in the pattern, from 0."""

    characters: Ranges
    position: int


class Sequence(msgspec.Struct, frozen=True):
    """One thing after the other; nothing at all when it is empty, as an anchor is."""

    items: tuple["Part", ...] = ()


class Choice(msgspec.Struct, frozen=True):
    """One of several."""

    options: tuple["Part", ...]


class Repetition(msgspec.Struct, frozen=True):
    """`low` to `high` times; `high` None for any number."""

    item: "Part"
    low: int
    high: int | None


Part: TypeAlias = CharacterStep | Sequence | Choice | Repetition


def steps_of(part: Part) -> int:
    """How many characters a part matches at most one after the other, loops once."""
    match part:
        case CharacterStep():
            return 1
        case Sequence(items):
            return sum(map(steps_of, items))
        case Choice(options):
            return sum(map(steps_of, options))
        case Repetition(item, low, high):
            return steps_of(item) * max(low if high is None else high, 1)
