"""Bundles of which one byte is another: in the text that stands in the file, and in the bytes that it encodes."""

import base64
import copy
from collections.abc import Callable, Iterator
from typing import Any

Bundle = dict[str, Any]
Place = tuple[str | int, ...]


def places(bundle: Bundle) -> Iterator[Place]:
    """Where base64 stands that an auditor relies on."""
    yield ("receipt",)
    for number, leaf in enumerate(bundle["leaves"]):
        yield ("leaves", number, "bytes")
        yield from (("leaves", number, "proof", step) for step in range(len(leaf["proof"])))


def with_text(bundle: Bundle, place: Place, change: Callable[[str], str]) -> Bundle:
    """A copy with another text there."""
    changed = copy.deepcopy(bundle)
    holder: Any = changed
    for name in place[:-1]:
        holder = holder[name]
    holder[place[-1]] = change(holder[place[-1]])
    return changed


def text_at(bundle: Bundle, place: Place) -> str:
    node: Any = bundle
    for name in place:
        node = node[name]
    assert isinstance(node, str)
    return node


def flipped_text(text: str, number: int) -> str:
    """The lowest bit of one character is another."""
    return text[:number] + chr(ord(text[number]) ^ 1) + text[number + 1 :]


def flipped_bytes(text: str, number: int) -> str:
    """One bit of one byte is another."""
    data = bytearray(base64.b64decode(text))
    data[number] ^= 1 << number % 8
    return base64.b64encode(data).decode()


def mutations(bundle: Bundle, step: int = 1) -> Iterator[tuple[str, Bundle]]:
    """(What was changed, the bundle), for every `step`th byte of each."""
    texts: list[Place] = [("checkpoint",), ("origin",), *places(bundle)]
    for place in texts:
        for number in range(0, len(text_at(bundle, place)), step):
            changed = with_text(bundle, place, lambda text, at=number: flipped_text(text, at))  # type: ignore[misc]
            yield f"character {number} of {place}", changed
    for place in places(bundle):
        for number in range(0, len(base64.b64decode(text_at(bundle, place))), step):
            changed = with_text(bundle, place, lambda text, at=number: flipped_bytes(text, at))  # type: ignore[misc]
            yield f"byte {number} of {place}", changed
