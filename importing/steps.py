"""How much work one import does. References multiply what a small document says: each place that is looked at counts,
and beyond the bound the whole import ends, with the name of the place that it had come to.
"""

from typing import Any

from importing.refusal import ImportRefused
from importing.words import one_line

MAX_STEPS = 10_000_000
"""A step takes a few microseconds, all of them half a minute. A large operation takes two thousand."""
_PATTERN_STEPS = 4_000
"""Whether the gateway can run a pattern takes up to a fraction of a second to find out."""
_TEXT = 32
"""Characters that are looked at in one step."""
_SHOWN = 2_000
"""Characters of a text that are looked at where it is cut to be shown."""
WRITING = 4
"""Steps for each value of a manifest that is written."""


class ImportSteps:
    """The steps of one import. `name` is that of the whole, for messages; `at` is where it is: an operation or a
    tool."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.at = "its paths"
        self._left = MAX_STEPS
        self._patterns: set[str] = set()

    def count(self, steps: int) -> None:
        """Raises ImportRefused when it is too much."""
        self._left -= steps
        if self._left < 0:
            raise ImportRefused(
                f"{self._name}: reading took more than {MAX_STEPS} steps, and had come to {one_line(self.at, 200)}. "
                "What it refers to multiplies: have fewer references inside each other, or import a part of it."
            )

    def count_text(self, text: str) -> None:
        """Look at a text."""
        self.count(len(text) // _TEXT)

    def count_values(self, value: Any, each: int = 1) -> None:
        """Look at every value inside this one; `each` of them takes so many steps."""
        waiting = [value]
        while waiting:
            one = waiting.pop()
            self.count(each)
            if isinstance(one, str):
                self.count_text(one)
            elif isinstance(one, dict):
                waiting += one.values()
            elif isinstance(one, list):
                waiting += one

    def count_breadth(self, value: Any) -> None:
        """Look at the members of a value, and at how many each of them has."""
        self.count(1)
        if isinstance(value, dict):
            self.count(len(value) + sum(map(_breadth, value.values())))

    def count_pattern(self, pattern: str) -> None:
        """Judge a pattern; a second time it costs nothing."""
        if pattern not in self._patterns:
            self._patterns.add(pattern)
            self.count(_PATTERN_STEPS)


def _breadth(value: Any) -> int:
    if isinstance(value, str):
        return min(len(value), _SHOWN) // _TEXT
    return len(value) // _TEXT if isinstance(value, list | dict) else 0
