"""Both offline verifiers come to the same verdict for the same bytes, however odd these are."""

import json
import random
from pathlib import Path

import pytest
from gateway_client import verify_bundle

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
])  # fmt: skip
def test_a_signed_value_of_another_type_has_this_verdict(
    program: list[str | Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: str, name: str, odd: str,
    verdict: str,
) -> None:  # fmt: skip
    vector = signed_with(monkeypatch, part, name, odd)
    assert by_python(vector, vector.data) == by_go(program, tmp_path, vector, vector.data) == verdict
