"""Vectors of bundles with kept values: proven, erased, and changed."""

import base64
from collections.abc import Callable, Iterator
from hashlib import sha256
from typing import Any

from contrib.verify.oracle import Fields, b64, b64url, canonical, hash_text
from contrib.verify.vector import vector

VALUES: Fields = {
    "/amount_cents": 12500, "/currency": "EUR", "/iban": "3000", "/is_urgent": True,
    "/note": 'a "b"\\ \u2028\n\x1f€𝄞<&>/',
    "/share": 0.1, "/tax": -4.5e-7, "/total": 1e21, "/weight": 1e16,
}  # fmt: skip
NUMBERS = {1e21: "1e+21", 1e16: "10000000000000000", -4.5e-7: "-4.5e-7"}
"""Numbers that RFC 8785 writes in another way than Python does."""
ERASED = ("/iban", "/note")


def salt_of(pointer: str) -> bytes:
    """The same for the same pointer."""
    return sha256(b"salt of " + pointer.encode()).digest()[:16]


def commitment_of(pointer: str, value: Any) -> str:
    written = NUMBERS.get(value, "").encode() if type(value) is float else b""
    return hash_text(salt_of(pointer) + (written or canonical(value)))


COMMITMENTS = {pointer: commitment_of(pointer, value) for pointer, value in VALUES.items()}
EVENT = {"kept": COMMITMENTS, "summary_template": "{amount_cents} {currency}"}


def kept_proof(pointer: str, value: Any) -> Fields:
    return {"pointer": pointer, "value": value, "salt": b64url(salt_of(pointer))}


def kept_proofs(*without: str) -> list[Fields]:
    return [kept_proof(pointer, value) for pointer, value in VALUES.items() if pointer not in without]


def erasure(*pointers: str, kind: str = "EvidenceErased", **members: Any) -> bytes:
    """An event that erased these values, and one of another call."""
    listed = [COMMITMENTS[pointer] for pointer in pointers] + [hash_text(b"of another call")]
    change = {"count": len(listed), "commitments": listed, "principal": "agent:invoices"}
    fields = {"event_id": "evt_09", "event_type": kind, "timestamp": "2026-11-23T04:59:59.000Z", "change": change}
    return canonical(fields | members)


def changed_row(number: int, **members: Any) -> Callable[[list[Fields]], object]:
    return lambda rows: rows[number].update(members)


def of_kept_values() -> Iterator[Fields]:
    def bundle(name: str, expected: str, edit: Callable[[Any], object] = lambda _: None, *without: str,
               event: Fields = EVENT, **more: Any) -> Fields:  # fmt: skip
        """A call with rows, of which `without` are missing, and `edit` changes the others."""
        rows = kept_proofs(*without)
        edit(rows)
        return vector(f"kept-{name}", expected, lambda made: made.update(kept=rows), event=event, **more)

    all_erased = {15: erasure(*VALUES)}
    yield bundle("values", "proven")
    yield bundle("values-in-another-order", "proven", list.reverse)
    yield bundle("values-of-which-two-are-erased", "proven", lambda _: None, *ERASED, erasures={15: erasure(*ERASED)})
    yield bundle("values-erased-by-two-events", "proven", lambda _: None, *ERASED,
                 erasures={15: erasure("/iban"), 20: erasure("/note")})  # fmt: skip
    yield bundle("values-erased-before-the-end", "proven", lambda _: None, *ERASED, erasures={9: erasure(*ERASED)})
    yield vector("kept-values-all-erased", "proven", event=EVENT, erasures=all_erased)
    yield bundle("value-that-is-also-erased", "proven", erasures=all_erased)
    refused: dict[str, Callable[[list[Fields]], object]] = {
        "value-changed": changed_row(0, value=12501), "text-changed": changed_row(1, value="USD"),
        "masked-value-changed": changed_row(2, value="3001"), "flag-changed": changed_row(3, value=False),
        "flag-as-a-number": changed_row(3, value=1), "number-as-a-text": changed_row(0, value="12500"),
        "number-that-is-too-large": changed_row(0, value=10**300), "salt-changed": changed_row(0, salt="A" * 22),
        "pointer-changed": changed_row(0, pointer="/amount"), "pointers-exchanged": changed_row(0, pointer="/currency"),
        "salts-exchanged": changed_row(0, salt=b64url(salt_of("/currency"))),
        "row-twice": lambda rows: rows.append(rows[0]),
        "row-of-another-call": lambda rows: rows.append(kept_proof("/vat", 19)),
    }  # fmt: skip
    for name, edit in refused.items():
        yield bundle(name, "kept_value", edit)
    yield bundle("values-that-the-event-does-not-have", "kept_value", event={})
    malformed: dict[str, Fields] = {
        "list-for-a-value": {"value": [12500]}, "object-for-a-value": {"value": {}},
        "null-for-a-value": {"value": None},
        "salt-with-padding": {"salt": b64url(salt_of("/amount_cents")) + "=="}, "salt-too-short": {"salt": "AAAA"},
        "salt-in-another-form": {"salt": "A" * 21 + "B"}, "salt-with-a-line-end": {"salt": "A" * 22 + "\n"},
        "number-for-a-pointer": {"pointer": 7},
    }  # fmt: skip
    for name, members in malformed.items():
        yield bundle(name, "bundle_malformed", changed_row(0, **members))
    yield from of_missing_values(bundle)


def of_missing_values(bundle: Callable[..., Fields]) -> Iterator[Fields]:
    def unchanged(_: object) -> None:
        """Leave the rows as they are."""

    yield vector("kept-values-missing", "missing", event=EVENT)
    yield bundle("row-missing", "missing", unchanged, "/amount_cents")
    yield bundle("row-missing-and-another-erased", "missing", unchanged, "/iban", erasures={15: erasure("/note")})
    yield bundle("row-whose-erasure-is-missing", "missing", unchanged, *ERASED, erasures={15: erasure("/iban")})
    forged: dict[str, tuple[str, Fields]] = {
        "by-another-kind-of-event": ("event_malformed", {"erasures": {15: erasure(*ERASED, kind="ActionCall")}}),
        "by-an-event-without-a-change": ("event_malformed", {"erasures": {15: erasure(*ERASED, change=None)}}),
        "by-an-event-of-another-form": (
            "event_malformed", {"erasures": {15: erasure(*ERASED, change={"commitments": ["all"]})}}
        ),
        "in-another-form": ("event_malformed", {"event": EVENT | {"kept": COMMITMENTS | {"/iban": "sha256:00"}}}),
    }  # fmt: skip
    for name, (expected, more) in forged.items():
        yield bundle(f"value-erased-{name}", expected, unchanged, *ERASED, **more)
    edits: dict[str, tuple[str, Callable[[Fields], object]]] = {
        "in-an-edited-event": ("root", lambda leaf: leaf.update(bytes=with_iban(leaf["bytes"]))),
        "at-another-place": ("root", lambda leaf: leaf.update(index=14)),
        "in-an-intent": ("leaves", lambda leaf: leaf.update(kind="intent")),
        "beyond-the-tree": ("leaf_index", lambda leaf: leaf.update(index=21)),
        "without-a-proof": ("proof_length", lambda leaf: leaf.update(proof=[])),
    }
    for name, (expected, edit) in edits.items():

        def edited(made: Fields, edit: Callable[[Fields], object] = edit) -> None:
            made["kept"] = kept_proofs(*ERASED)
            edit(made["erasures"][0])

        yield vector(f"kept-value-erased-{name}", expected, edited, event=EVENT, erasures={15: erasure("/note")})


def with_iban(leaf: str) -> str:
    """The bytes of a leaf with one commitment more."""
    begin = b'"commitments":["'
    return b64(base64.b64decode(leaf).replace(begin, begin + COMMITMENTS["/iban"].encode() + b'","'))
