"""One canonical JSON object of the ledger (an event, an intent, a receipt), with the exact text of each member.

Texts are what is compared and what signatures cover, so that no two readings of one number or of a name that stands
twice can make two records look alike.
"""

import json
from typing import Any

from gateway_client.errors import EvidenceRefused
from gateway_client.wire.decoding import STRICT, is_too_deep

_JSON = json.JSONDecoder(**STRICT)


class Record:
    """`kind` is event, intent or receipt. Refusals have the reason `<kind>_malformed` where nothing else is said."""

    def __init__(self, data: bytes | str, kind: str) -> None:
        """Raises EvidenceRefused for what is no JSON object, or not in canonical form."""
        self.kind = kind
        self._texts: dict[str, str] = {}
        try:
            text = data.decode() if isinstance(data, bytes) else data
            fields, at = _JSON.decode(text), 1
            for name in fields if isinstance(fields, dict) else ():
                start = at + len(f'"{name}":')
                at = _JSON.raw_decode(text, start)[1] + 1
                self._texts[name] = text[start : at - 1]
        except (ValueError, RecursionError):
            raise self.malformed("is not a readable JSON object") from None
        if not isinstance(fields, dict) or is_too_deep(fields):
            raise self.malformed("is not a readable JSON object")
        if sorted(self._texts) != list(self._texts) or self.without() != text:
            raise self.malformed("is not in canonical form")

    def malformed(self, what: str) -> EvidenceRefused:
        """To be raised. `what`: the end of a sentence that begins with the record."""
        return EvidenceRefused(f"{self.kind}_malformed", f"The {self.kind} {what}.")

    def without(self, *names: str) -> str:
        """The object's text without these members."""
        return "{" + ",".join(f'"{name}":{text}' for name, text in self._texts.items() if name not in names) + "}"

    def exact(self, name: str) -> str:
        """The exact text of a member; an absent one is null."""
        return self._texts.get(name, "null")

    def text(self, name: str) -> str | None:
        """A member that is a text; None for one that is null or absent. Raises EvidenceRefused."""
        value: Any = json.loads(self.exact(name))
        if value is not None and not isinstance(value, str):
            raise self.malformed(f"has a member {name} that is no text")
        return value

    def required(self, name: str) -> str:
        """A text that must be there. Raises EvidenceRefused."""
        value = self.text(name)
        if value is None:
            raise self.malformed(f"has no text named {name}")
        return value

    def inner(self, name: str) -> "Record":
        """A member that is an object itself. Raises EvidenceRefused."""
        return Record(self.exact(name), self.kind)

    def require_same(self, name: str, other: "Record", other_name: str | None = None) -> None:
        """Raises EvidenceRefused disagreement unless both have the same member."""
        if self.exact(name) != other.exact(other_name or name):
            raise EvidenceRefused("disagreement", f"The {self.kind} has another {name} than the {other.kind}.")
