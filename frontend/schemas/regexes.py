r"""Patterns of a schema: the part of ECMA-262 that every reader understands alike and none has to backtrack for.

The engine here is an automaton, but a request schema is shown to clients, whose engines are not. So a pattern is read
before it is used: look-around and back-references are refused, and so is whatever two engines read differently
(`a++`, `(?i)`, `\A`, `[a&&b]`). Guarantees bounded depth and size. frontend/schemas/ambiguity.py judges their cost.
"""

import re
from typing import NoReturn

from frontend.schemas import characters
from frontend.schemas.characters import Ranges
from frontend.schemas.pattern import (
    MAX_CHARACTERS,
    MAX_DEPTH,
    MAX_REPETITION,
    MAX_STEPS,
    CharacterStep,
    Choice,
    Part,
    PatternRefused,
    Repetition,
    Sequence,
    steps_of,
)

_COUNT = re.compile(r"\{(\d{1,9})(,(\d{1,9})?)?\}")
_GROUP_NAME = re.compile(r"\?<[A-Za-z_$][\w$]*>")
_PROPERTY = re.compile(r"[pP]\{([A-Za-z_]+(?:=[A-Za-z_]+)?)\}")
_NUMBER = re.compile(r"x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|u\{([0-9A-Fa-f]{1,6})\}|c([A-Za-z])")
_CLASSES = {"d": characters.DIGIT, "w": characters.WORD, "s": characters.SPACE}
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "v": "\v"}
_LOOK = {"?=": "looks ahead", "?!": "looks ahead", "?<=": "looks behind", "?<!": "looks behind"}
_LOOK_MEND = "Say it without: a list (enum), two patterns in allOf, or not beside it."


def parse_pattern(text: str) -> Part:
    """Parse a pattern into its parts. Raises PatternRefused."""
    if len(text) > MAX_CHARACTERS:
        raise PatternRefused(f"has more than {MAX_CHARACTERS} characters", "Shorten it.", MAX_CHARACTERS + 1)
    reader = _RegexParser(text)
    part = reader.choice(0)
    if not reader.is_at_end():
        reader.refuse("has a `)` that closes nothing", r"Write \).")
    if steps_of(part) > MAX_STEPS:
        raise PatternRefused(f"has repetitions that multiply to more than {MAX_STEPS} characters", "Use maxLength.", 1)
    return part


class _RegexParser:
    """Recursive descent over the text; `at` is the next character."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def is_at_end(self) -> bool:
        return self._at >= len(self._text)

    def refuse(self, what: str, mend: str, at: int | None = None) -> NoReturn:
        raise PatternRefused(what, mend, (self._at if at is None else at) + 1)

    def choice(self, depth: int) -> Part:
        if depth > MAX_DEPTH:
            self.refuse(f"has groups nested deeper than {MAX_DEPTH}", "Flatten them.")
        options = [self._sequence(depth)]
        while self._takes("|"):
            options.append(self._sequence(depth))
        return options[0] if len(options) == 1 else Choice(tuple(options))

    def _takes(self, wanted: str) -> bool:
        is_next = self._text.startswith(wanted, self._at)
        self._at += len(wanted) if is_next else 0
        return is_next

    def _sequence(self, depth: int) -> Part:
        items: list[Part] = []
        while not self.is_at_end() and self._text[self._at] not in "|)":
            start = self._at
            atom = self._atom(depth)
            repeat = self._repetition(atom)
            if repeat is not atom and isinstance(atom, Sequence) and not atom.items and self._text[start] != "(":
                self.refuse("repeats a place, not a character", "Remove the repetition.", start)
            items.append(repeat)
        return items[0] if len(items) == 1 else Sequence(tuple(items))

    def _repetition(self, atom: Part) -> Part:
        if self.is_at_end():
            return atom
        start, character = self._at, self._text[self._at]
        if character in "*+?":
            self._at += 1
            low, high = {"*": (0, None), "+": (1, None), "?": (0, 1)}[character]
        elif character == "{":
            low, high = self._count()
        else:
            return atom
        self._takes("?")  # lazy: another order, the same texts
        if not self.is_at_end() and self._text[self._at] in "*+?{":
            self.refuse("repeats a repetition, which engines read differently", "Put it into a group.", start)
        return Repetition(atom, low, high)

    def _count(self) -> tuple[int, int | None]:
        start = self._at
        count = _COUNT.match(self._text, start)
        if count is None:
            self.refuse("has a `{` that begins no repetition", r"Write \{, or {low,high}.")
        low = int(count[1])
        high = low if count[2] is None else int(count[3]) if count[3] else None
        if max(low, high or 0) > MAX_REPETITION:
            self.refuse(f"has a repetition that counts beyond {MAX_REPETITION}", "Use maxLength.")
        if high is not None and high < low:
            self.refuse("has a repetition that ends before it begins", "Write {low,high}.")
        self._at = count.end()
        return low, high

    def _atom(self, depth: int) -> Part:
        start, character = self._at, self._text[self._at]
        if character in "*+?{":
            self.refuse(f"has a `{character}` that repeats nothing", f"Write \\{character}.")
        self._at += 1
        if character == "(":
            return self._group(depth, start)
        if character == "[":
            return CharacterStep(self._class(start), start)
        if character == "\\":
            return self._escape(start)
        if character in "^$":
            return Sequence()
        if character == ".":
            return CharacterStep(characters.without(characters.LINE_ENDS), start)
        return CharacterStep(characters.of_text(character), start)

    def _group(self, depth: int, start: int) -> Part:
        for opening, does in sorted(_LOOK.items()):
            if self._text.startswith(opening, self._at):
                self.refuse(f"{does} (`({opening}`), which needs backtracking", _LOOK_MEND, start)
        if not self._takes("?:"):
            named = _GROUP_NAME.match(self._text, self._at)
            if named:
                self._at = named.end()
            elif self._takes("?"):
                self.refuse("has a `(?` that begins no group of ECMA-262", "Use ( ), (?: ) or (?<name> ).", start)
        inside = self.choice(depth + 1)
        if not self._takes(")"):
            self.refuse("has a `(` that is not closed", r"Write \(, or close it.", start)
        return inside

    def _escape(self, start: int) -> Part:
        if self.is_at_end():
            self.refuse("ends in a backslash", r"Write \\.", start)
        character = self._text[self._at]
        if character in "123456789" or self._text.startswith("k<", self._at):
            self.refuse(f"refers back (`\\{character}`), which needs backtracking", "Say it without.", start)
        if character in "bB":
            self._at += 1
            return Sequence()
        return CharacterStep(self._escaped(start), start)

    def _escaped(self, start: int) -> Ranges:
        """The set behind a backslash, inside a class and outside."""
        character = self._text[self._at] if not self.is_at_end() else ""
        if character.lower() in _CLASSES and character:
            self._at += 1
            ranges = _CLASSES[character.lower()]
            return ranges if character.islower() else characters.without(ranges)
        if named := _PROPERTY.match(self._text, self._at):
            self._at = named.end()
            return characters.of_property(named[1], is_negated=character == "P")
        if number := _NUMBER.match(self._text, self._at):
            self._at = number.end()
            code = ord(number[4]) % 32 if number[4] else int(number[1] or number[2] or number[3], 16)
            if code > characters.LAST:
                self.refuse("names no character", "Correct it.", start)
            return ((code, code),)
        if character in _CONTROLS:
            self._at += 1
            return characters.of_text(_CONTROLS[character])
        if not character.isascii() or character.isalnum() or character in "<>_" or not character.isprintable():
            self.refuse(f"has `\\{character}`, which is no escape of ECMA-262", "Write the character itself.", start)
        self._at += 1
        return characters.of_text(character)

    def _class(self, start: int) -> Ranges:
        is_negated = self._takes("^")
        sets: list[Ranges] = []
        while not self._takes("]"):
            if self.is_at_end():
                self.refuse("has a `[` that is not closed", r"Write \[, or close it.", start)
            low = self._member(start)
            if self._text.startswith("-", self._at) and not self._text.startswith("-]", self._at):
                self._at += 1
                high = self._member(start)
                if not (_is_one(low) and _is_one(high)) or low[0][0] > high[0][0]:
                    self.refuse("has a range in `[ ]` without two ends in order", r"Write \- for a dash.", start)
                low = ((low[0][0], high[0][0]),)
            sets.append(low)
        if not sets:
            self.refuse("has an empty `[ ]`", "Name its characters.", start)
        ranges = characters.union(*sets)
        return characters.without(ranges) if is_negated else ranges

    def _member(self, start: int) -> Ranges:
        if self.is_at_end():
            self.refuse("has a `[` that is not closed", r"Write \[, or close it.", start)
        at, character = self._at, self._text[self._at]
        self._at += 1
        if character == "\\":
            return self._escaped(at)
        if character == "[" or (self._text.startswith(character, self._at) and character in "&-~"):
            self.refuse(f"has `{character}` in `[ ]`, which engines read differently", f"Write \\{character}.", at)
        return characters.of_text(character)


def _is_one(ranges: Ranges) -> bool:
    return len(ranges) == 1 and ranges[0][0] == ranges[0][1]
