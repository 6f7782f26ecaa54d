"""A receipt of a call that several operators approved, as the client library verifies it offline."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from gateway_client import EvidenceRefused
from gateway_client.evidence.approval_signatures import check_approval
from gateway_client.evidence.records import Record

from tests.support.proofs import Key
from tests.support.signed_approvals import signature_of

CALL = {"action_id": "pay", "plan_hash": "sha256:aa"}
DETAIL = {"approval_id": "apr_1", "shown_hash": "sha256:bb", **CALL}
KEYS = {"ada": Key(), "bob": Key()}
JKTS = tuple(key.jkt for key in KEYS.values())


def given(name: str, *groups: str) -> dict[str, Any]:
    key = KEYS[name]
    signature = signature_of(key, DETAIL, operator=name)
    return {"approved_by": name, "operator_jkt": key.jkt, "groups": list(groups), "signature": signature}


def approval() -> dict[str, Any]:
    """That of a receipt: ada of finance approved, and bob after her."""
    several = [given("ada", "finance"), given("bob")]
    quorum = {"count": 2, "groups": {"finance": 1}}
    last = {name: several[-1][name] for name in ("approved_by", "operator_jkt", "signature")}
    return {"approval_id": "apr_1", "quorum": quorum, "approvals": several, **last}


def record(members: dict[str, Any]) -> Record:
    return Record(json.dumps(members, sort_keys=True, separators=(",", ":")), "receipt")


def check(told: dict[str, Any], *operators: str) -> str | None:
    return check_approval(record(CALL), record(told), operators)


def test_each_approval_of_a_quorum_is_proven_to_be_its_operators() -> None:
    assert check(approval()) == KEYS["bob"].jkt
    assert check(approval(), *JKTS) == KEYS["bob"].jkt
    with pytest.raises(EvidenceRefused, match="not signed by the operator's key"):
        check(approval(), KEYS["bob"].jkt)


def without_signature(told: dict[str, Any]) -> None:
    del told["approvals"][0]["signature"]


def without_first(told: dict[str, Any]) -> None:
    del told["approvals"][0]


def with_last_twice(told: dict[str, Any]) -> None:
    told["approvals"][0] = told["approvals"][1]


def with_signature_twice(told: dict[str, Any]) -> None:
    told["approvals"][0]["signature"] = told["approvals"][1]["signature"]


def outside_group(told: dict[str, Any]) -> None:
    told["approvals"][0]["groups"] = []


def without_quorum(told: dict[str, Any]) -> None:
    told["quorum"] = None


SPOILT = [
    (without_signature, "is not signed"), (without_first, "do not meet"), (with_last_twice, "stands for two"),
    (with_signature_twice, "not signed by the operator's key"), (outside_group, "do not meet"),
    (without_quorum, "in another form"),
]  # fmt: skip


@pytest.mark.parametrize(("spoil", "why"), SPOILT)
def test_a_quorum_that_its_approvals_do_not_prove_is_refused(spoil: Callable[[dict[str, Any]], None], why: str) -> None:
    told = approval()
    spoil(told)
    with pytest.raises(EvidenceRefused, match=why):
        check(told)
