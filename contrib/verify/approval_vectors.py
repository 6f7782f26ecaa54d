"""Vectors of receipts with an operator's signature, or with those of several."""

from collections.abc import Iterator

from contrib.verify.oracle import (
    OPERATOR_KEYS,
    Fields,
    approved_by,
    approved_by_several,
    given_approval,
    operator_jwk,
    signed_approval,
    some_hash,
)
from contrib.verify.vector import vector


def of_the_approval() -> Iterator[Fields]:
    yield vector("approval-signed", "proven", **approved_by(signed_approval()), operators=("alice",))
    yield vector(
        "approval-signed-by-one-of-two", "proven", **approved_by(signed_approval()), operators=("bob", "alice")
    )
    yield vector("approval-signed-and-no-operator-known", "proven", **approved_by(signed_approval()))
    yield vector("approval-signed-without-a-name", "proven", **approved_by(signed_approval(operator=...)),
                 operators=("alice",))  # fmt: skip
    yield vector("approval-that-teaches", "proven", **approved_by(signed_approval(learn_domain="bank.example")))
    refused = {
        "not-signed": approved_by(None),
        "by-another-operator": approved_by(signed_approval("bob"), "bob"),
        "by-another-key": approved_by(signed_approval("bob")),
        "for-another-approval": approved_by(signed_approval(approval_id="apr_02")),
        "for-another-action": approved_by(signed_approval(action_id="payment_estimate")),
        "for-another-plan": approved_by(signed_approval(plan_hash=some_hash("another plan"))),
        "of-a-denial": approved_by(signed_approval(decision="deny")),
        "of-a-denial-turned": approved_by(signed_approval(decision="deny", later={"decision": "approve"})),
        "in-another-name": approved_by(signed_approval(operator="bob")),
        "of-another-type": approved_by(signed_approval(header={"typ": "dpop+jwt"})),
        "of-another-algorithm": approved_by(signed_approval(header={"alg": "none"})),
        "with-the-header-of-another": approved_by(
            signed_approval("bob", header={"jwk": operator_jwk(OPERATOR_KEYS["alice"])})
        ),
        "of-other-claims": approved_by(signed_approval(later={"iat": 1795409991})),
        "that-is-none": approved_by("approved"),
    }
    for name, call in refused.items():
        yield vector(f"approval-{name}", "approval_signature", **call, operators=("alice",))
    yield vector("approval-of-nobody", "approval_signature", operators=("alice",))
    yield vector("approval-by-another-key-and-no-operator-known", "approval_signature",
                 **approved_by(signed_approval("bob")))  # fmt: skip


BOTH = ("alice", "bob")


def forged_approvals(unsigned: list[Fields]) -> dict[str, Fields]:
    """Calls of which an approval is missing, unsigned, or another one than its quorum asks for."""
    alice, bob = given_approval("alice"), given_approval("bob")
    elsewhere = given_approval("alice", signature=signed_approval(operator="alice", aud="https://gate.example.org"))
    return {
        "not-signed-and-operators-known": approved_by_several(*unsigned),
        "with-an-unsigned-approval": approved_by_several(unsigned[0], bob),
        "whose-last-approval-is-unsigned": approved_by_several(alice, unsigned[1]),
        "of-an-unknown-operator": approved_by_several(given_approval("carol"), bob),
        "of-one-operator": approved_by_several(bob, bob),
        "of-one-operator-with-two-keys": approved_by_several(alice | {"approved_by": "bob"}, bob),
        "of-one-key-in-two-names": approved_by_several(
            alice, alice | {"approved_by": "bob", "signature": signed_approval(operator="bob")}
        ),
        "with-the-signature-of-another": approved_by_several(alice | {"signature": bob["signature"]}, bob),
        "of-another-approval": approved_by_several(
            alice | {"signature": signed_approval(operator="alice", approval_id="apr_02")}, bob
        ),
        "of-another-plan": approved_by_several(
            alice | {"signature": signed_approval(operator="alice", plan_hash=some_hash("another plan"))}, bob
        ),
        "of-a-denial": approved_by_several(
            alice | {"signature": signed_approval(operator="alice", decision="deny")}, bob
        ),
        "of-another-gateway": approved_by_several(elsewhere, bob),
        "too-small": approved_by_several(bob),
        "without-approvals": approved_by_several(last=bob),
        "outside-its-group": approved_by_several(alice, bob, groups={"finance": 1}),
        "of-one-for-two-groups": approved_by_several(
            given_approval("alice", "finance", "security"), bob, groups={"finance": 1, "security": 1}
        ),
        "of-too-many-groups": approved_by_several(alice, bob, groups={f"g{number}": 0 for number in range(9)}),
        "whose-last-is-not-the-operator": approved_by_several(bob, alice, last=bob),
        "whose-operator-has-another-signature": approved_by_several(
            alice, bob | {"signature": signed_approval("bob", operator="bob", iat=1795409991)}, last=bob
        ),
    }  # fmt: skip


def of_several_approvals() -> Iterator[Fields]:
    finance, alice, bob = given_approval("alice", "finance"), given_approval("alice"), given_approval("bob")
    unsigned = [given_approval(name, signature=None) for name in ("alice", "bob")]
    local = [
        given_approval(name, signature=signed_approval(name, operator=name, aud=f"http://{host}:7070"))
        for name, host in (("alice", "127.0.0.1"), ("bob", "localhost"))
    ]
    proven = approved_by_several(finance, bob, groups={"finance": 1})
    yield vector("quorum-signed", "proven", **proven, operators=BOTH)
    yield vector("quorum-signed-and-no-operator-known", "proven", **proven)
    yield vector("quorum-at-two-names-of-dev-mode", "proven", **approved_by_several(*local), operators=BOTH)
    yield vector("quorum-not-signed", "proven", **approved_by_several(*unsigned))
    # The quorum and the groups are the gateway's own statements: no operator signs them.
    yield vector("quorum-lowered", "proven", **approved_by_several(bob, count=1), operators=BOTH)
    yield vector("quorum-of-another-group", "proven", operators=BOTH,
                 **approved_by_several(given_approval("alice", "security"), bob, groups={"security": 1}))  # fmt: skip
    refused = forged_approvals(unsigned)
    for name, call in refused.items():
        yield vector(f"quorum-{name}", "approval_signature", **call, operators=BOTH)
    yield vector("quorum-with-an-unsigned-approval-and-no-operator-known", "approval_signature",
                 **refused["with-an-unsigned-approval"])  # fmt: skip
    malformed: dict[str, Fields] = {
        "without-a-quorum": {"quorum": None}, "without-its-approvals": {"approvals": None},
        "of-no-number": {"quorum": {"count": None, "groups": {}}}, "without-groups": {"quorum": {"count": 2}},
        "of-a-text": {"quorum": {"count": "2", "groups": {}}},
        "of-a-nameless-operator": {"approvals": [alice | {"approved_by": None}, bob]},
        "of-a-text-for-groups": {"approvals": [alice | {"groups": "finance"}, bob]},
    }  # fmt: skip
    for name, members in malformed.items():
        yield vector(f"quorum-{name}", "receipt_malformed", **approved_by_several(alice, bob, **members))
