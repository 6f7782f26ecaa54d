"""Vectors of receipts of calls that ran by a standing approval."""

from collections.abc import Iterator
from typing import Any

from contrib.verify.oracle import OPERATOR_KEYS, ORIGIN, Fields, approved_by, changed, signed_jws
from contrib.verify.vector import vector

ID = "sta_01980f2e-4c1b-7d3a-9c55-0f6f7f0a1b2c"
BEGUN = 1795409998
"""The second in which the call began."""


def signed_standing(
    name: str = "alice", header: Fields | None = None, later: Fields | None = None, **claims: Any
) -> str:  # fmt: skip
    """An operator's signature, with other claims; `later` are changes that the signature does not know of."""
    stated: Fields = {
        "aud": [f"https://{ORIGIN}", ORIGIN], "standing_id": ID, "action_id": "payment_transfer",
        "principal": "agent:invoices", "until": BEGUN + 3600, "iat": BEGUN - 60, "operator": name, "max_calls": 20,
        "where": [{"pointer": "/amount_cents", "op": "<=", "value": 5000}],
    }  # fmt: skip
    signed = changed(stated, claims)
    return signed_jws(OPERATOR_KEYS[name], {"typ": "standing+jws"} | (header or {}), signed, signed | (later or {}))


def ran_by(text: str | None, standing_id: str | None = ID) -> Fields:
    """Receipt and event of a call that ran by this one."""
    named = {} if standing_id is None else {"standing_id": standing_id}
    return {"receipt": named | ({} if text is None else {"standing_signature": text}), "event": named}


def beside_an_approval() -> Fields:
    """A call that ran by this one, whose receipt names another operator's approval, too."""
    ran, approved = ran_by(signed_standing()), approved_by(None, "bob")
    return approved | {part: approved[part] | ran[part] for part in ran}


def of_standing_approvals() -> Iterator[Fields]:
    yield vector("standing-signed", "proven", **ran_by(signed_standing()), operators=("alice", "bob"))
    yield vector("standing-signed-and-no-operator-known", "proven", **ran_by(signed_standing()))
    yield vector("standing-until-the-next-second", "proven", **ran_by(signed_standing(until=BEGUN + 1)))
    refused = {
        "by-another-operator": ran_by(signed_standing("bob")),
        "without-a-text": ran_by(None),
        "without-an-id": ran_by(signed_standing(), None),
        "of-another-id": ran_by(signed_standing(standing_id=ID[:-1] + "d")),
        "for-another-action": ran_by(signed_standing(action_id="payment_estimate")),
        "for-another-principal": ran_by(signed_standing(principal="agent:reports")),
        "for-another-ledger": ran_by(signed_standing(aud=[f"https://{ORIGIN}", "other.example"])),
        "whose-time-was-over": ran_by(signed_standing(until=BEGUN)),
        "without-an-end": ran_by(signed_standing(until=...)),
        "of-other-terms": ran_by(signed_standing(later={"max_calls": 1000})),
        "of-another-type": ran_by(signed_standing(header={"typ": "approval+jws"})),
        "that-is-none": ran_by("signed"),
        "beside-an-approval": beside_an_approval(),
    }
    for name, call in refused.items():
        yield vector(f"standing-{name}", "approval_signature", **call, operators=("alice",))
    yield vector(
        "standing-that-the-event-does-not-name", "disagreement", receipt=ran_by(signed_standing())["receipt"]
    )  # fmt: skip
