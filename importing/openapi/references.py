"""References of a document, followed inside it and nowhere else. Never opens a file or an address."""

from collections.abc import Iterator
from typing import Any

from referencing import Registry, Resource
from referencing.exceptions import Unresolvable

from importing.refusal import LeftOut
from importing.steps import ImportSteps
from importing.words import one_line

MAX_STEPS = 32
"""References that lead to a reference."""


class References:
    """The places of one document."""

    def __init__(self, root: dict[str, Any], steps: ImportSteps) -> None:
        self.steps = steps
        self._resolver = Registry().with_resource("", Resource.opaque(root)).resolver("")

    def target(self, reference: str) -> Any:
        """The value that a reference names. Raises LeftOut, ImportRefused."""
        self.steps.count_text(reference)
        if not reference.startswith("#"):
            raise LeftOut(f"refers to {one_line(reference, 80)!a}, outside the document")
        try:
            found = self._resolver.lookup(reference).contents
        except (Unresolvable, ValueError, TypeError, LookupError):
            raise LeftOut(f"refers to {one_line(reference, 80)!a}, which is not there") from None
        self.steps.count_breadth(found)
        return found

    def followed(self, value: Any) -> dict[str, Any]:
        """A mapping, behind any references in its place. Raises LeftOut."""
        for _ in range(MAX_STEPS):
            if not isinstance(value, dict):
                break
            if not isinstance(value.get("$ref"), str):
                return value
            value = self.target(value["$ref"])
        raise LeftOut("a reference leads to no mapping")


def references_in(value: Any) -> Iterator[str]:
    """Every reference in a value, without following it."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            if isinstance(one.get("$ref"), str):
                yield one["$ref"]
            waiting += one.values()
        elif isinstance(one, list):
            waiting += one
