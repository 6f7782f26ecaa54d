"""The digest of an operation: of all that decides what it sends and expects, with everything that it refers to.

The same for the same description, wherever the operation stands in the document. Examples, callbacks, failures and
vendors' extensions do not count. Independent of the manifest that was made, and so of this program's version.
"""

import hashlib
import json
from typing import Any

from importing.openapi.document import ApiDocument, ApiOperation
from importing.openapi.references import References, references_in
from importing.refusal import LeftOut

_PARTS = ("operationId", "summary", "description", "requestBody")


class Digests:
    """Digests of the operations of one document; each place that is referred to is hashed once."""

    def __init__(self, document: ApiDocument) -> None:
        self._document = document
        self._references: References = document.references
        self._hashes: dict[str, tuple[str, frozenset[str]]] = {}

    def of(self, operation: ApiOperation) -> str:
        """`sha256:` and the digest in hex."""
        parts: dict[str, Any] = {name: operation.raw[name] for name in _PARTS if name in operation.raw}
        parts["parameters"] = operation.parameters
        parts["responses"] = {
            status: answer for status, answer in operation.responses.items() if status[:1] in {"2", "d"}
        }
        self._document.steps.count(len(operation.responses))
        parts["servers"] = operation.servers
        parts["security"] = operation.security
        parts["schemes"] = {
            name: self._document.schemes[name] for name in operation.scheme_names if name in self._document.schemes
        }
        self._document.steps.count_values(parts)
        return "sha256:" + _hash([operation.key, parts, sorted(self._reached(parts).items())])

    def _reached(self, value: Any) -> dict[str, str]:
        """The hash of each place that is referred to, directly or through others."""
        reached: dict[str, str] = {}
        waiting = list(references_in(value))
        while waiting:
            reference = waiting.pop()
            if reference not in reached:
                reached[reference], further = self._place(reference)
                self._document.steps.count(1 + len(further))
                waiting += further
        return reached

    def _place(self, reference: str) -> tuple[str, frozenset[str]]:
        if reference not in self._hashes:
            try:
                target = self._references.target(reference)
                self._document.steps.count_values(target)
                self._hashes[reference] = _hash(target), frozenset(references_in(target))
            except LeftOut:
                self._hashes[reference] = "missing", frozenset()
        return self._hashes[reference]


def _hash(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
