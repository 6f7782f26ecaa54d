"""Requests to an OPA and its answers: targets of its REST API, and the few members of its answers that count.

Pure: bytes in, values out. Guarantees that an answer is either understood whole or raises NotUnderstood; only
frontend/policy/question.py knows the form of a decision document. Source: OPA's REST API ("Data API", "Provenance").
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import quote

import msgspec

from frontend.policy.engine import PolicyRefused
from ipc.texts.foreign_texts import clean_reason

DECISION: Final = "/v1/data/gateway/decision"
DATA: Final = "/v1/data"
MARK: Final = "gateway_pushed"
"""The document beside ours that says what was pushed; who loses data loses it too."""
_RESERVED: Final = (MARK, "system")
"""Names at the top of data.json that would be this document, and OPA's own."""
_SHOWN = 200


class NotUnderstood(Exception):
    """An answer, and none that this question can have. A sentence."""


class OpaAnswer(NamedTuple):
    """One answer of the HTTP server."""

    status: int
    content: bytes


class Mark(msgspec.Struct, frozen=True):
    """A mark in OPA's data: the digest of all pushed documents, and their names."""

    digest: str = ""
    documents: tuple[str, ...] = ()


class _Bundle(msgspec.Struct, frozen=True):
    revision: str = ""


class _Provenance(msgspec.Struct, frozen=True):
    bundles: dict[str, _Bundle] = {}


class OpaDocument(msgspec.Struct, frozen=True):
    """Members of an answer of the Data API. `result` is the JSON of the document, empty where it is undefined."""

    result: msgspec.Raw = msgspec.Raw(b"")
    provenance: _Provenance = _Provenance()

    @property
    def revision(self) -> str | None:
        """One revision for all bundles together; None without bundles, or if a bundle reports no revision."""
        bundles = self.provenance.bundles
        if not bundles or not all(one.revision for one in bundles.values()):
            return None
        return json.dumps(sorted((name, one.revision) for name, one in bundles.items()))


class _Refusal(msgspec.Struct, frozen=True):
    code: str = ""
    message: str = ""


class Documents(NamedTuple):
    """Our documents: name -> value, and the digest that stands for them all."""

    values: Mapping[str, Any]
    digest: str


_found = msgspec.json.Decoder(OpaDocument)
_mark = msgspec.json.Decoder(Mark)
_refusal = msgspec.json.Decoder(_Refusal)


def target(path: str, *, has_provenance: bool) -> str:
    """A path with its query."""
    return f"{path}?provenance=true" if has_provenance else path


def found_in(answer: OpaAnswer) -> OpaDocument:
    """Read an answer of the Data API. Raises NotUnderstood."""
    if answer.status != 200:
        raise NotUnderstood(refusal_of(answer))
    try:
        if answer.content.count(b'"result"') > 1:
            json.loads(answer.content, object_pairs_hook=_once)
        return _found.decode(answer.content)
    except (ValueError, RecursionError):
        raise NotUnderstood("OPA's answer is not what the Data API answers") from None


def document_in(answer: OpaDocument) -> str | None:
    """The JSON text of the decision; None where it is undefined. Raises NotUnderstood."""
    try:
        return bytes(answer.result).decode() or None
    except UnicodeDecodeError:
        raise NotUnderstood("OPA's answer is not UTF-8") from None


def mark_in(answer: OpaDocument) -> Mark:
    """The mark in OPA's data; an empty mark if it is missing or has another form."""
    try:
        return _mark.decode(answer.result)
    except ValueError:
        return Mark()


def refusal_of(answer: OpaAnswer) -> str:
    """Why OPA did not do it, in a sentence."""
    try:
        said = _refusal.decode(answer.content)
    except (ValueError, RecursionError):
        said = _Refusal()
    words = clean_reason(f" ({said.code}: {said.message})" if said.code else "")
    return f"OPA answered {answer.status}{words[:_SHOWN]}"


def documents_of(data: str) -> Documents:
    """The documents of a data.json, each under its name at the top of OPA's data. Raises PolicyRefused."""
    values = json.loads(data)
    problems = [
        f"data.json: {name}: is a name that can't be pushed into OPA's data" for name in _RESERVED if name in values
    ]
    if problems:
        raise PolicyRefused(tuple(problems))
    return Documents(values, hashlib.sha256(data.encode()).hexdigest())


def patch(documents: Documents, there: Mark) -> bytes:
    """A JSON Patch of /v1/data that replaces the gateway's documents in OPA, all at once. Documents that are gone
    from data.json are removed; data of others is left alone."""
    mark = {"digest": documents.digest, "documents": sorted(documents.values)}
    steps: list[dict[str, Any]] = [
        {"op": "remove", "path": _pointer(name)} for name in there.documents if name not in documents.values
    ]
    steps += [
        {"op": "add", "path": _pointer(name), "value": value}
        for name, value in ({**documents.values, MARK: mark}).items()
    ]
    return msgspec.json.encode(steps)


def _pointer(name: str) -> str:
    """JSON Pointer (RFC 6901), which OPA reads with percent-encoding on top."""
    return "/" + quote(name.replace("~", "~0").replace("/", "~1"), safe="~")


def _once(pairs: list[tuple[str, Any]]) -> None:
    # SECURITY: two results in one answer, and parsers differ over which of them counts.
    if len(dict(pairs)) != len(pairs):
        raise ValueError("a name appears twice in one object")
