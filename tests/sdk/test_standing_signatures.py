"""A receipt of a call that ran by a standing approval, as the client library verifies it offline."""

import json
from typing import Any

import pytest
from gateway_client import EvidenceRefused
from gateway_client.evidence.records import Record
from gateway_client.evidence.standing_signatures import check_standing

from tests.support.proofs import Key
from tests.support.signed_approvals import tampered
from tests.support.standing_approvals import signed_standing

ADA, BOB = Key(), Key()
ID = "sta_019a9a3b-0000-7000-8000-000000000000"
NOW = 1_790_000_000
TEXT = signed_standing(ADA, now=NOW, standing_id=ID, until=NOW + 3600)
CALL = {
    "action_id": "text_digest", "principal": "uid:1000", "started_at": "2026-09-21T14:13:20.000Z", "standing_id": ID,
    "standing_signature": TEXT,
}  # fmt: skip


def check(*operators: str, **changes: Any) -> str | None:
    members = {name: value for name, value in (CALL | changes).items() if value is not None}
    text = json.dumps(members, sort_keys=True, separators=(",", ":"))
    return check_standing(Record(text, "receipt"), "localhost", operators)


def test_the_text_is_proven_to_be_signed_by_an_operators_key() -> None:
    assert check() == check(ADA.jkt, BOB.jkt) == ADA.jkt
    assert check(standing_id=None, standing_signature=None) is None


SPOILT: dict[str, dict[str, Any]] = {
    "no text": {"standing_signature": None},
    "a changed text": {"standing_signature": tampered(TEXT, max_calls=9)},
    "a text of another type": {"standing_signature": signed_standing(ADA, {"typ": "approval+jws"}, standing_id=ID)},
    "a text that is none": {"standing_signature": "a.b.c"},
    "another ledger": {
        "standing_signature": signed_standing(
            ADA, now=NOW, standing_id=ID, until=NOW + 3600, aud=["http://localhost", "other"]
        )
    },
    "another action": {"action_id": "pay"},
    "another principal": {"principal": "uid:1"},
    "another id": {"standing_id": ID[:-1] + "1"},
    "a call after its time": {"started_at": "2026-09-21T15:13:20.000Z"},
    "a time that is none": {"started_at": "soon"},
}


@pytest.mark.parametrize("spoilt", SPOILT)
def test_nothing_is_proven_with(spoilt: str) -> None:
    with pytest.raises(EvidenceRefused) as refused:
        check(**SPOILT[spoilt])
    assert refused.value.reason == "approval_signature"


def test_an_operator_who_is_not_known_proves_nothing() -> None:
    with pytest.raises(EvidenceRefused, match="whose key is known"):
        check(BOB.jkt)
