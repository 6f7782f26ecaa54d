"""Both offline verifiers come to the same verdict for the same bytes, however odd these are."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
from gateway_client import verify_bundle

from contrib.verify.oracle import JWKS, OPERATOR_KEYS, TIME, approved_by, operator_jwk, signed_approval
from contrib.verify.standing_vectors import ran_by, signed_standing
from contrib.verify.vector import vector
from tests.contrib.verify.command import UNREADABLE, run
from tests.contrib.verify.odd_values import MEMBERS, ODD, odd_texts, put, signed_with
from tests.contrib.verify.vectors import PROVEN, Vector, named


def by_python(vector: Vector, data: bytes) -> str:
    keys = None if vector.receipt_keys is None else json.loads(vector.receipt_keys)
    verdict = verify_bundle(
        data, origin_keys=vector.origin_key, receipt_keys=keys, operator_keys=vector.operator_jkts
    )  # fmt: skip
    return verdict.reason or PROVEN


def by_go(program: list[str | Path], folder: Path, vector: Vector, data: bytes) -> str:
    bundle, keys = folder / "bundle.json", folder / "jwks.json"
    bundle.write_bytes(data)
    keys.write_bytes(vector.receipt_keys or b"")
    return run(program, bundle, "--origin-key", vector.origin_key, "--receipt-keys", keys).reason


@pytest.mark.parametrize("name", ["proven-approved", "kept-values-of-which-two-are-erased"])
def test_an_odd_value_at_any_place_of_a_bundle_has_one_verdict(
    program: list[str | Path], tmp_path: Path, name: str
) -> None:
    vector, differing = named(name), []
    for what, data in odd_texts(vector.bundle, random.Random(name), 250):
        verdicts = by_python(vector, data), by_go(program, tmp_path, vector, data)
        if verdicts[0] != verdicts[1]:
            differing.append((what, *verdicts))
    assert differing == []


@pytest.mark.parametrize(("place", "odd", "verdict"), [
    (("keys",), "1.0", PROVEN),
    (("leaves", 0, "index"), "9223372036854775808", "bundle_malformed"),
    (("leaves", 0, "index"), "-9223372036854775808", "leaf_index"),
    (("leaves", 0, "proof", 0), "null", "bundle_malformed"),
    (("leaves", 0, "proof"), '["€"]', "bundle_malformed"),
    (("more",), "1e400", UNREADABLE),
    (("more",), "[" * 255 + "]" * 255, PROVEN),
    (("more",), "[" * 256 + "]" * 256, UNREADABLE),
    (("more",), "1" + "0" * 400, UNREADABLE),
])  # fmt: skip
def test_a_value_that_readers_of_json_differ_in_has_this_verdict(
    program: list[str | Path], tmp_path: Path, place: tuple[str | int, ...], odd: str, verdict: str
) -> None:
    vector = named("proven-success")
    data = put(vector.bundle, place, odd)
    assert by_python(vector, data) == by_go(program, tmp_path, vector, data) == verdict


@pytest.mark.parametrize("part", MEMBERS)
def test_an_odd_value_that_is_signed_has_one_verdict(
    program: list[str | Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    chance, differing = random.Random(part), []
    for name in MEMBERS[part]:
        for odd in chance.sample(ODD, 6):
            vector = signed_with(monkeypatch, part, name, odd)
            verdicts = by_python(vector, vector.data), by_go(program, tmp_path, vector, vector.data)
            if verdicts[0] != verdicts[1]:
                differing.append((name, odd[:40], *verdicts))
    assert differing == []


@pytest.mark.parametrize(("part", "name", "odd", "verdict"), [
    ("receipt", "failure_class", "0", "receipt_malformed"),
    ("receipt", "normalized_result", '"a"', "receipt_malformed"),
    ("event", "timestamp", "true", "event_malformed"),
    ("event", "receipt_hash", "1", "event_malformed"),
    ("event", "more", "1e400", "event_malformed"),
    ("intent", "dispatched_at", "[]", "intent_malformed"),
    ("jwk", "kty", '"a"', "approval_signature"),
    ("quorum", "count", "9223372036854775808", "receipt_malformed"),
    ("given", "groups", "true", "receipt_malformed"),
    ("given", "more", "[" * 257 + "]" * 257, "receipt_malformed"),
    ("event", "more", "[" * 255 + "]" * 255, PROVEN),
    ("event", "more", "[" * 256 + "]" * 256, "event_malformed"),
    ("event", "more", '{"a":' * 2000 + "1" + "}" * 2000, "event_malformed"),
    ("claims", "more", "[" * 2000 + "]" * 2000, "approval_signature"),
    ("quorum", "count", "-1", "receipt_malformed"),
    ("quorum", "groups", '{"a":-9223372036854775808,"b":-1}', "receipt_malformed"),
    ("receipt", "approval", '{"b":1,"a":2}', "receipt_malformed"),
    ("receipt", "normalized_result", '{"a":2,"a!":1}', PROVEN),
])  # fmt: skip
def test_a_signed_value_of_another_type_has_this_verdict(
    program: list[str | Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: str, name: str, odd: str,
    verdict: str,
) -> None:  # fmt: skip
    vector = signed_with(monkeypatch, part, name, odd)
    assert by_python(vector, vector.data) == by_go(program, tmp_path, vector, vector.data) == verdict


def ran_at(begun: str) -> dict[str, Any]:
    """A call that ran by a standing approval and began then."""
    ran = ran_by(signed_standing(until=1795500000))
    return ran | {"receipt": ran["receipt"] | {"started_at": begun}}


def loose(text: str) -> str:
    """The same bytes in base64url whose last bits are not zero."""
    return text[:-1] + chr(ord(text[-1]) + 1)


LOOSE_KEY = operator_jwk(OPERATOR_KEYS["alice"]) | {"x": loose(operator_jwk(OPERATOR_KEYS["alice"])["x"])}
TWICE = {"keys": [*JWKS["keys"], *JWKS["keys"]]}


@pytest.mark.parametrize(("call", "verdict"), [
    (approved_by(loose(signed_approval())), "approval_signature"),
    (approved_by(signed_approval() + "\n"), "approval_signature"),
    (approved_by(signed_approval(header={"jwk": LOOSE_KEY})), "approval_signature"),
    ({"extension": f"time={TIME} unresolved={'9' * 5000}"}, "note_malformed"),
    ({"extension": f"time={TIME} unresolved=007"}, "note_malformed"),
    ({"extension": f"time={TIME} unresolved=1\n{'x' * 20_000}"}, "note_malformed"),
    ({"trusted": TWICE}, "receipt_key"),
    *[
        (ran_at(begun), "approval_signature" if begun != TIME else PROVEN)
        for begun in (TIME, "2026-11-23", "2026-11-23 04:59:58.100Z", "20261123T045958Z", "2026-11-23T4:59:58.100Z",
                      "2026-11-23T04:59:58,100Z", "2026-11-23T04:59:58.100+00:00", "2026-11-23T24:00:00.000Z")
    ],
])  # fmt: skip
def test_a_form_that_readers_may_be_lenient_with_has_this_verdict(
    program: list[str | Path], tmp_path: Path, call: dict[str, Any], verdict: str
) -> None:
    made = vector("", verdict, **call)
    one = Vector("", made["bundle"], made["origin_key"], json.dumps(made["receipt_keys"]).encode(), (), (), "")
    assert by_python(one, one.data) == by_go(program, tmp_path, one, one.data) == verdict
