"""Values that two readers of JSON may understand differently, put in each place of a bundle and of its records."""

import copy
import json
import random
from collections.abc import Iterator
from typing import Any, Final

import pytest

from contrib.verify import oracle
from contrib.verify.oracle import (
    OPERATOR_KEYS,
    Fields,
    approved_by,
    approved_by_several,
    given_approval,
    operator_jwk,
    signed_approval,
)
from contrib.verify.vector import vector
from tests.contrib.verify.vectors import Vector

ODD: Final = (
    "null", "true", "0", "-0", "-1", "1.0", "1e0", "1E+2", "9223372036854775808", "-9223372036854775809", "1e400",
    "-1e400", "1" + "0" * 400, "1" + "0" * 5000, '""', '"a"', r'"\ud800"', r'"\udc00x"', r'"\u0000"', '"€"',
    r'"\ud83d\ude00"', "[]", "{}", "[null]", "[[]]", "[{}]", '{"a":1,"a":2}', r'{"a\u0062":1,"ab":2}', '{"":null}',
    '["a"]', '["a","a"]', "[null,null]", '"null"', r'"\/"', "[" * 40 + "]" * 40,
)  # fmt: skip
NO_JSON: Final = ("00", "+1", "NaN", "Infinity", '"\t"', "[1,]", "'a'")
MARK: Final = "@@odd@@"
Place = tuple[str | int, ...]


def places(node: object, path: Place = ()) -> Iterator[Place]:
    """The paths of all members and items."""
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for name, one in items:
        yield (*path, name)
        yield from places(one, (*path, name))


def put(bundle: Fields, place: Place, odd: str, *, is_added: bool = False) -> bytes:
    """The text of a bundle with this there; `is_added`: beside the member, under another name."""
    changed = copy.deepcopy(bundle)
    holder: Any = changed
    for name in place[:-1]:
        holder = holder[name]
    if not is_added:
        holder[place[-1]] = MARK
    elif isinstance(holder, dict):
        holder["more"] = MARK
    else:
        holder.insert(0, MARK)
    return json.dumps(changed).replace(f'"{MARK}"', odd).encode()


def doubled(bundle: Fields, name: str, odd: str) -> bytes:
    """The text of a bundle with one of its members twice, the second time in other characters."""
    escaped = f'"\\u{ord(name[0]):04x}{name[1:]}"'
    return json.dumps(bundle | {MARK: 0}).replace(f'"{MARK}": 0', f"{escaped}: {odd}").encode()


def odd_texts(bundle: Fields, chance: random.Random, count: int) -> Iterator[tuple[str, bytes]]:
    """Return `count` texts of bundles, each with the name of its change."""
    known = list(places(bundle))
    for _ in range(count):
        place, odd = chance.choice(known), chance.choice(ODD + NO_JSON)
        if chance.random() < 0.1:
            yield f"{place[0]} twice, {odd[:40]}", doubled(bundle, str(place[0]), odd)
        else:
            is_added = chance.random() < 0.3
            yield f"{odd[:40]} {'beside' if is_added else 'at'} {place}", put(bundle, place, odd, is_added=is_added)


MEMBERS: Final = {
    "receipt": (
        "receipt_version", "receipt_id", "principal", "action_id", "plan_hash", "approval", "normalized_result",
        "verification_outcome", "standing_id", "standing_signature", "started_at", "finished_at", "failure_class",
        "signing_key_id", "grant_id", "more",
    ),
    "event": (
        "event_type", "event_id", "timestamp", "decision", "intent_id", "receipt_hash", "kept", "approved_by", "more",
    ),
    "intent": ("intent_id", "dispatched_at", "provider_module", "approval_id", "trace_id", "more"),
    "approval": ("approval_id", "approved_by", "operator_jkt", "signature", "quorum", "approvals", "more"),
    "claims": ("aud", "approval_id", "action_id", "plan_hash", "decision", "operator", "iat", "more"),
    "header": ("typ", "alg", "jwk", "more"),
    "jwk": ("kty", "crv", "x", "y", "more"),
    "quorum": ("count", "groups", "finance"),
    "given": ("approved_by", "operator_jkt", "groups", "signature", "more"),
    "erasure": ("event_type", "change", "commitments", "more"),
    "all": ("grant_id", "principal", "action_id", "trace_id"),
}  # fmt: skip
"""The kind of a signed record -> its members."""


def call_with(part: str, name: str) -> Fields:
    """Arguments of `vector` for a call with MARK in this member."""
    odd: Fields = {name: MARK}
    if part == "all":
        return {"receipt": odd, "event": odd, "intent": odd}
    if part in ("receipt", "event", "intent"):
        return {part: odd}
    if part == "erasure":
        change = {"commitments": MARK if name == "commitments" else ["sha256:" + "0" * 64]}
        event = {"event_type": "EvidenceErased", "change": change} | ({} if name == "commitments" else odd)
        return {"erasures": {14: oracle.canonical(event)}}
    if part in ("quorum", "given"):
        groups = MARK if name == "groups" else {"finance": MARK if name == "finance" else 1}
        first = given_approval("alice", "finance") | (odd if part == "given" else {})
        made = approved_by_several(first, given_approval("bob"), groups={"finance": 1})
        if part == "quorum":
            made["receipt"]["approval"]["quorum"] = {"count": MARK if name == "count" else 2, "groups": groups}
        return made
    if part == "approval":
        made = approved_by(signed_approval())
        made["receipt"]["approval"] |= odd
        return made
    if part == "claims":
        return approved_by(signed_approval("alice", **odd))
    header = odd if part == "header" else {"jwk": operator_jwk(OPERATOR_KEYS["alice"]) | odd}
    return approved_by(signed_approval(header=header))


def signed_with(monkeypatch: pytest.MonkeyPatch, part: str, name: str, odd: str) -> Vector:
    """A bundle whose gateway and operators have signed this value."""
    plain = oracle.canonical
    with monkeypatch.context() as patched:
        patched.setattr(oracle, "canonical", lambda value: plain(value).replace(f'"{MARK}"'.encode(), odd.encode()))
        made = vector(part, "", **call_with(part, name))
    return Vector(part, made["bundle"], made["origin_key"], json.dumps(made["receipt_keys"]).encode(), (), (), "")
