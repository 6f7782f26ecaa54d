"""Both verifiers come to the same verdict on random kept values, of which random ones were erased.

The values are read from a request as a front reads them, and committed to as the notary does.
"""

import json
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from gateway_client import verify_bundle
from hypothesis import given
from hypothesis import strategies as st

from contrib.verify.oracle import (
    JWKS,
    LOG_KEY,
    ORIGIN,
    Fields,
    b64url,
    bundle_of,
    canonical,
    event_of,
    intent_of,
    signed_receipt,
    vkey,
)
from ipc.evidence.kept_values import KeptRules, commitment, values_of
from tests.contrib.verify.command import judge
from tests.contrib.verify.vectors import PROVEN, Vector

KEY = vkey(ORIGIN, LOG_KEY)
SCALARS = (
    st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20) | st.text('"\\/\b\f\n\r\t\x00\x1f\x7f\u2028\ufeff€𝄞<&', max_size=8)
    | st.sampled_from([0.0, -0.0, 1e16, 1e21, 1e-6, 1e-7, 5e-324, 1.7976931348623157e308, 9007199254740993.0])
)  # fmt: skip


class KeptCall(NamedTuple):
    """`rows` are the values that are left, `erased` the pointers of the others."""

    kept: dict[str, str]
    rows: list[Fields]
    erased: frozenset[str]
    erasures: dict[int, bytes]


@st.composite
def kept_calls(draw: st.DrawFn) -> KeptCall:
    """Calls with kept and masked values; some were erased, by up to three events around that of the call."""
    names = draw(st.lists(st.text(min_size=1, max_size=6), min_size=1, max_size=8, unique=True))
    request = {name: draw(SCALARS) for name in names}
    pointers = ["/" + name.replace("~", "~0").replace("/", "~1") for name in names]
    masked = draw(st.sets(st.sampled_from(pointers)))
    values = values_of(KeptRules(tuple(one for one in pointers if one not in masked), tuple(sorted(masked))), request)
    assert values is not None
    salts = {one.pointer: sha256(one.pointer.encode()).digest()[:16] for one in values.values}
    kept = {one.pointer: commitment(salts[one.pointer], one.text.encode()) for one in values.values}
    places = {one.pointer: draw(st.sampled_from([None, None, 9, 15, 20])) for one in values.values}
    rows = [
        {"pointer": one.pointer, "value": json.loads(one.text), "salt": b64url(salts[one.pointer])}
        for one in values.values if places[one.pointer] is None
    ]  # fmt: skip
    erasures = {}
    for place in sorted({one for one in places.values() if one is not None}):
        listed = [kept[pointer] for pointer, its in places.items() if its == place]
        change = {"count": len(listed), "commitments": listed}
        erasures[place] = canonical({"event_id": f"evt_{place}", "event_type": "EvidenceErased", "change": change})
    return KeptCall(kept, rows, frozenset(one for one, place in places.items() if place is not None), erasures)


def vector_of(call: KeptCall, rows: list[Fields], erasures: dict[int, bytes]) -> Vector:
    stored = signed_receipt({})
    bundle = bundle_of(stored, event_of(stored, {"kept": call.kept}), intent_of({}), erasures=erasures)
    return Vector("random", bundle | {"kept": rows}, KEY, json.dumps(JWKS).encode(), (), (), PROVEN)


def reason_of(vector: Vector) -> str | None:
    verdict = verify_bundle(vector.data, origin_keys=KEY, receipt_keys=JWKS)
    return PROVEN if verdict.is_proven else verdict.reason


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("bundles")


def test_random_values_and_erasures_are_proven_alike(program: list[str | Path], folder: Path) -> None:
    @given(kept_calls(), st.randoms(use_true_random=False))
    def proven(call: KeptCall, order: Any) -> None:
        rows = list(call.rows)
        order.shuffle(rows)
        vector = vector_of(call, rows, call.erasures)
        told = verify_bundle(vector.data, origin_keys=KEY, receipt_keys=JWKS).call
        assert told is not None
        assert told.kept == {row["pointer"]: row["value"] for row in call.rows}
        assert set(told.erased) == call.erased
        verdict = judge(program, vector, folder)
        assert verdict.reason == PROVEN, verdict.output
        lines = [line for line in verdict.output.splitlines() if line.startswith("It kept ")]
        assert len(lines) == len(call.kept)
        assert sum(line.endswith(": erased") for line in lines) == len(call.erased)

    proven()


def test_a_random_change_is_refused_alike(program: list[str | Path], folder: Path) -> None:
    @given(kept_calls().filter(lambda call: call.kept), SCALARS, st.data())
    def refused(call: KeptCall, other: Any, data: st.DataObject) -> None:
        rows, erasures = [dict(row) for row in call.rows], dict(call.erasures)
        kinds = ["row", "value", "salt"] * bool(rows) + ["erasure"] * bool(erasures)
        kind = data.draw(st.sampled_from(kinds))
        row = data.draw(st.sampled_from(rows)) if kind != "erasure" else {}
        expected = "missing" if kind in ("row", "erasure") else "kept_value"
        if kind == "erasure":
            del erasures[data.draw(st.sampled_from(sorted(erasures)))]
        elif kind == "row":
            rows.remove(row)
        elif kind == "salt":
            row["salt"] = b64url(sha256(row["salt"].encode()).digest()[:16])
        else:
            is_same = row["value"] == other and isinstance(row["value"], bool) == isinstance(other, bool)
            row["value"] = f"not {other}" if is_same else other
        vector = vector_of(call, rows, erasures)
        assert (reason_of(vector), judge(program, vector, folder).reason) == (expected, expected)

    refused()
