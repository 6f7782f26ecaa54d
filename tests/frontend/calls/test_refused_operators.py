"""Operators that could not prove who they are: counted all, told of once a minute."""

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from frontend.auth.dpop import DpopVerifier
from frontend.calls.refusals import OTHERS, Refusals
from frontend.calls.refused_operators import RefusedOperators
from frontend.deadlines import CallDeadlines
from frontend.errors import GateError
from frontend.http.peercred import PeerCredentials
from frontend.http.requests import Request
from frontend.notary.errors import NotaryUnavailable
from tests.support.front_core import API_KEY, BASE, Core, refuses, signed
from tests.support.patience import PATIENT
from tests.support.proofs import Key, proof

STATUS = "/v1/admin/status"
PATIENT_HOUR = replace(PATIENT, calls=CallDeadlines(refusal_seconds=3600.0))

pytestmark = pytest.mark.front(workers=0, deadlines=PATIENT_HOUR)
Headers = list[tuple[str, str]]


def wrong_key(_core: Core) -> Headers:
    return signed(Key(), "GET", STATUS, API_KEY)


def tampered(core: Core) -> Headers:
    """With a broken signature: the key that the proof names did not make it."""
    token, good = signed(core.operator_key, "GET", STATUS, API_KEY)
    return [token, ("dpop", good[1][:-4] + ("AAAA" if good[1][-4:] != "AAAA" else "BBBB"))]


def other_method(core: Core) -> Headers:
    return signed(core.operator_key, "POST", STATUS, API_KEY)


def unknown_token(core: Core) -> Headers:
    return signed(core.operator_key, "GET", STATUS, "key-op-" + "f" * 32)


async def tell(core: Core) -> list[dict[str, Any]]:
    return (await core.events(event_type="OperatorAuthFailed"))[::-1]


async def refuse(core: Core, headers: Headers, status: int = 401) -> str:
    answer = await core.ask("GET", STATUS, b"", headers)
    assert answer.status == status
    return dict(answer.headers)["X-Trace-Id"]


@pytest.mark.parametrize(
    ("headers", "code", "names", "signs"),
    [
        (lambda _: [], "missing_auth_header", False, ""),
        (unknown_token, "invalid_operator_token", False, ""),
        (wrong_key, "invalid_dpop", True, "stranger"),
        (tampered, "invalid_dpop", True, ""),
        (other_method, "invalid_dpop", True, "operator"),
    ],
    ids=["no header", "unknown API key", "another key", "tampered", "of another request"],
)  # fmt: skip
async def test_the_first_one_is_in_evidence_at_once_with_what_is_known(
    core: Core, headers: Callable[[Core], Headers], code: str, names: bool, signs: str
) -> None:
    trace_id = await refuse(core, headers(core))
    (event,) = await tell(core)
    assert (event["decision"], event["error_code"], event["trace_id"]) == ("deny", code, trace_id)
    assert "principal" not in event
    attempts = event["attempts"]
    assert attempts.pop("count") == 1
    assert ("operator" in attempts, attempts.pop("operator", "op")) == (names, "op")
    thumbprint = attempts.pop("thumbprint", None)
    assert attempts == {}
    assert (thumbprint is not None) == bool(signs)
    assert (thumbprint == core.operator_key.jkt) == (signs == "operator")


async def test_later_refusals_are_counted_in_one_event(core: Core) -> None:
    for _ in range(7):
        await refuse(core, wrong_key(core))
    await refuse(core, [])
    assert [one["attempts"]["count"] for one in await tell(core)] == [1, 1]
    refused = core.services.refusals
    await refused.tell_due(now=0.0)
    assert len(await tell(core)) == 2, "the minute is not over"
    await refused.tell_due()
    told = await tell(core)
    assert [(one["error_code"], one["attempts"]["count"]) for one in told[2:]] == [("invalid_dpop", 6)]
    assert told[2]["attempts"]["operator"] == "op"
    await refused.tell_due()
    await refused.tell_due()
    assert len(await tell(core)) == 3
    await refuse(core, wrong_key(core))
    assert (await tell(core))[-1]["attempts"]["count"] == 1, "a new minute has begun"


async def test_a_replayed_proof_is_logged_with_its_owner_and_a_good_one_is_not(core: Core) -> None:
    headers = signed(core.operator_key, "GET", STATUS, API_KEY)
    assert (await core.ask("GET", STATUS, b"", headers)).status == 200
    assert await tell(core) == []
    await refuse(core, headers)
    (event,) = await tell(core)
    assert event["error_code"] == "replay_detected"
    assert event["attempts"] == {"count": 1, "operator": "op", "thumbprint": core.operator_key.jkt}


async def test_a_lost_store_counts_as_no_operators_failure(core: Core) -> None:
    path = "/v1/approvals"
    core.client.faults["UseProof"] = refuses(NotaryUnavailable("gone"))
    headers = signed(core.operator_key, "GET", path, API_KEY)
    assert (await core.ask("GET", path, b"", headers)).status == 503
    await core.services.refusals.tell_due()
    assert await tell(core) == []


async def test_many_users_take_a_bounded_table_and_are_all_counted(core: Core) -> None:
    services = core.services
    refusals = Refusals(services.journal, PATIENT_HOUR.calls, max_users=3)
    refused = RefusedOperators(services.authentication, refusals, services.metrics)
    for uid in range(20):
        request = Request("GET", STATUS, peer=PeerCredentials(1, uid, uid), listener="admin")
        await refused.note(request, GateError("missing_auth_header"))
    assert len(refusals) == 4
    await refusals.tell_due()
    told = await tell(core)
    assert [one.get("principal") for one in told] == ["uid:0", "uid:1", "uid:2", None, None]
    assert [one["attempts"] for one in told[:3]] == [{"count": 1, "uid": uid} for uid in range(3)]
    assert [one["attempts"] for one in told[3:]] == [
        {"count": 1, "is_many_users": True}, {"count": 16, "is_many_users": True},
    ]  # fmt: skip
    assert OTHERS not in [one["attempts"].get("uid") for one in told]


def test_the_signer_of_a_proof_is_found_with_any_other_claims() -> None:
    verifier, key = DpopVerifier(BASE), Key()
    good = proof(key, "GET", "http://elsewhere.test/", "token", iat=0)
    assert verifier.signer_of(good) == key.jkt
    for bad in ("", "a.b.c", good[:-4] + "AAAA", good + "A" * 5000, good.rpartition(".")[0], "ÿ" + good):
        assert verifier.signer_of(bad) is None
    assert not verifier.headers
    assert len(verifier.keys) == 0
