"""Bundles verified by the library: every test vector of contrib/verify, changed bundles, and bundles of old ledgers."""

import json
from typing import Any

import pytest
from gateway_client import BundleVerdict, verify_bundle
from hypothesis import given
from hypothesis import strategies as st

from contrib.verify import oracle
from tests.contrib.verify.command import NO_BUNDLES, UNREADABLE
from tests.contrib.verify.mutations import mutations
from tests.contrib.verify.vectors import ALL, PROVEN, Vector, named

KEY = oracle.vkey(oracle.ORIGIN, oracle.LOG_KEY)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.text(max_size=5), children, max_size=3),
    max_leaves=5,
)


def verdict_of(vector: Vector, bundle: Any = None) -> BundleVerdict:
    receipt_keys = None if vector.receipt_keys is None else json.loads(vector.receipt_keys)
    return verify_bundle(
        vector.bundle if bundle is None else bundle,
        origin_keys=vector.origin_key, receipt_keys=receipt_keys, witness_keys=vector.witness_keys,
        operator_keys=vector.operator_jkts,
    )  # fmt: skip


def reason_of(vector: Vector, bundle: Any = None) -> str | None:
    """ "proven", or the class of the refusal. A key that can't be used raises, where the programs say unreadable."""
    try:
        verdict = verdict_of(vector, bundle)
    except ValueError:
        return UNREADABLE
    assert verdict.is_proven == (verdict.reason is None) == (verdict.sentence is None)
    assert verdict.sentence is None or verdict.sentence.endswith(".")
    return PROVEN if verdict.is_proven else verdict.reason


@pytest.mark.parametrize("vector", ALL, ids=lambda vector: vector.name)
def test_every_vector_comes_to_what_it_expects(vector: Vector) -> None:
    assert reason_of(vector) == vector.expected
    assert reason_of(vector, vector.data) == vector.expected, "as the bytes of a file"


def test_no_byte_of_a_proven_bundle_can_be_another() -> None:
    vector = named("proven-approved")
    changed = list(mutations(vector.bundle, step=7))
    assert len(changed) > 1000
    assert [what for what, bundle in changed if reason_of(vector, bundle) == PROVEN] == []


@pytest.mark.parametrize("data", NO_BUNDLES.values(), ids=NO_BUNDLES)
def test_a_malformed_bundle_is_unreadable(data: bytes) -> None:
    assert reason_of(named("proven-success"), data) == UNREADABLE


@given(st.dictionaries(st.sampled_from(["origin", "receipt", "leaves", "checkpoint", "keys"]), JSON))
def test_every_bundle_gets_a_verdict(members: dict[str, Any]) -> None:
    vector = named("proven-success")
    assert reason_of(vector, {**vector.bundle, **members}) != UNREADABLE


def test_a_proven_call_is_reported_with_its_approval_and_its_place() -> None:
    call = verdict_of(named("proven-approved")).call
    assert call is not None
    assert (call.principal, call.action_id, call.action_version) == ("agent:invoices", "payment_transfer", "1.0.0")
    assert (call.decision, call.approval_id, call.approved_by) == ("allow", "apr_01", "alice")
    assert (call.result, call.verification, call.failure_class) == ("success", "verified", None)
    assert (call.intent_index, call.event_index, call.origin, call.size) == (6, 11, oracle.ORIGIN, 21)
    assert (call.checkpoint_time, call.unresolved_intents, call.receipt_key) == (oracle.TIME, 3, "receipts-2026")
    assert verdict_of(named("proven-without-receipt-keys")).call != call
    assert getattr(verdict_of(named("proven-without-receipt-keys")).call, "receipt_key", "") is None
    cosigned = verdict_of(named("proven-one-witness")).call
    assert cosigned is not None
    assert cosigned.witnesses == {"witness.example.org": "2026-11-23T05:00:05Z"}


@pytest.mark.parametrize(("version", "expected"), [(1, PROVEN), (2, "leaf_order")])
def test_the_intent_may_come_later_in_ledgers_from_before_the_tree_alone(version: int, expected: str) -> None:
    """The older ledger has all its events as the first leaves; its receipts are of version 1."""
    receipt = oracle.signed_receipt(dict.fromkeys(oracle.NOT_IN_VERSION_1, ...) if version == 1 else {})
    bundle = oracle.bundle_of(receipt, oracle.event_of(receipt, {}), oracle.intent_of({}), before=12, index=11)
    verdict = verify_bundle(bundle, origin_keys=KEY, receipt_keys=oracle.JWKS)
    assert (verdict.reason or PROVEN) == expected


def test_one_of_several_keys_of_the_log_is_enough() -> None:
    vector = named("proven-success")
    other = oracle.vkey(oracle.ORIGIN, oracle.STRANGER)
    elsewhere = oracle.vkey("gate.example.org", oracle.LOG_KEY)
    for keys in ([other, KEY], [KEY, elsewhere], (one for one in (elsewhere, other, KEY))):
        assert verify_bundle(vector.bundle, origin_keys=keys).is_proven
    assert verify_bundle(vector.bundle, origin_keys=[other, elsewhere]).reason == "note_signature"
    assert verify_bundle(vector.bundle, origin_keys=[elsewhere]).reason == "note_origin"
    assert verify_bundle(vector.bundle, origin_keys=[]).reason == "note_origin"


def test_keys_that_can_not_be_used_are_a_mistake_of_the_caller() -> None:
    bundle = named("proven-success").bundle
    for key in ("", "gate.example.com", KEY[:-1], KEY.replace("+AZ", "+AY")):
        with pytest.raises(ValueError, match="verifier key"):
            verify_bundle(bundle, origin_keys=key)
    with pytest.raises(ValueError, match="JWKS"):
        verify_bundle(bundle, origin_keys=KEY, receipt_keys={})


def test_so_many_of_the_trusted_witnesses_are_enough() -> None:
    vector = named("proven-two-witnesses")
    stranger = oracle.vkey("witness.example.com", oracle.STRANGER, oracle.WITNESS)
    keys = [stranger, *vector.witness_keys]

    def verdict(count: int | None, *witnesses: str) -> BundleVerdict:
        return verify_bundle(
            vector.bundle, origin_keys=vector.origin_key, witness_keys=witnesses or keys, min_witnesses=count
        )

    for count in (1, 2):
        call = verdict(count).call
        assert call is not None
        assert set(call.witnesses) == set(oracle.WITNESSES)
    assert verdict(3).reason == verdict(None).reason == verdict(1, stranger).reason == "witness_signature"
    for unfit in (0, -1, 4):
        with pytest.raises(ValueError, match="witnesses are asked for"):
            verdict(unfit)


def test_one_key_under_two_names_is_one_witness() -> None:
    vector = named("proven-one-witness")
    key = oracle.WITNESSES["witness.example.org"]
    again = oracle.vkey("another.example", key, oracle.WITNESS)
    with pytest.raises(ValueError, match="1 keys of witnesses are named"):
        verify_bundle(
            vector.bundle, origin_keys=vector.origin_key, witness_keys=[*vector.witness_keys, again], min_witnesses=2
        )


def test_every_part_of_a_proven_bundle_matters() -> None:
    vector = named("proven-approved")

    @given(st.data())
    def try_another_value(data: st.DataObject) -> None:
        bundle: dict[str, Any] = json.loads(vector.data)
        places: list[tuple[Any, Any]] = [(bundle, name) for name in bundle if name != "keys"]
        places += [(leaf, name) for leaf in bundle["leaves"] for name in leaf]
        places += [(leaf["proof"], step) for leaf in bundle["leaves"] for step in range(len(leaf["proof"]))]
        holder, name = data.draw(st.sampled_from(places))
        before = json.dumps(holder[name])
        holder[name] = data.draw(JSON)
        if json.dumps(holder[name]) != before:
            assert reason_of(vector, bundle) != PROVEN

    try_another_value()


@given(st.binary(max_size=60) | JSON.map(oracle.canonical))
def test_noise_that_a_log_has_signed_is_refused(noise: bytes) -> None:
    stored = oracle.signed_receipt({})
    event, intent = oracle.event_of(stored, {}), oracle.intent_of({})
    noisy = (
        oracle.bundle_of(noise, oracle.event_of(noise, {}), intent),
        oracle.bundle_of(stored, noise, intent),
        oracle.bundle_of(stored, event, noise),
    )
    assert not any(verify_bundle(bundle, origin_keys=KEY).is_proven for bundle in noisy)


@given(st.text(max_size=80) | st.text(alphabet="\n —+=09Aa", max_size=80))
def test_noise_for_a_note_is_refused(noise: str) -> None:
    vector = named("proven-success")
    assert reason_of(vector, vector.bundle | {"checkpoint": noise}) not in (PROVEN, UNREADABLE)


@pytest.mark.parametrize("place", range(0, 20, 3))
def test_no_character_of_an_operators_signature_can_be_another(place: int) -> None:
    signature = oracle.signed_approval()
    at = len(signature) * place // 20
    changed = signature[:at] + ("B" if signature[at] == "A" else "A") + signature[at + 1 :]
    call = oracle.approved_by(changed)
    stored = oracle.signed_receipt(call["receipt"])
    bundle = oracle.bundle_of(stored, oracle.event_of(stored, call["event"]), oracle.intent_of(call["intent"]))
    verdict = verify_bundle(bundle, origin_keys=KEY, receipt_keys=oracle.JWKS)
    assert verdict.reason == "approval_signature"
