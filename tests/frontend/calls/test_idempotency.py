"""`Idempotency-Key`: the same call made again is answered with the outcome of the first, and runs at most once."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from contract.failures import CallFailure
from frontend.api.handlers.execute import CALL
from frontend.calls.idempotency import call_key, outcome_of
from frontend.calls.record import CallRecord
from frontend.errors import GateError
from frontend.http.answers import Answer
from frontend.http.requests import Request
from frontend.notary.errors import NotaryUnavailable
from ipc.operations.calls import CallKey, Closed, RepeatedCall
from tests.support.front_core import HOLD, Agent, Core, front_core, refuses, signed
from tests.support.held_calls import approve

PATH = "/v1/actions/echo/execute"


class _Manifest:
    keep_output = False


class _Action:
    manifest = _Manifest()


def key_of(*values: str) -> str | None:
    headers = [("idempotency-key", value) for value in values]
    found = call_key(Request("POST", PATH, headers=headers), _Action())  # type: ignore[arg-type]
    return None if found is None else found.key


@pytest.mark.parametrize(
    ("value", "key"),
    [
        ('"abc"', "abc"), ("abc", "abc"), (' "a b" ', "a b"),
        (r'"a\"b\\"', 'a"b\\'), ("a.b_c-1", "a.b_c-1"),
        ('"' + "k" * 255 + '"', "k" * 255),
    ],
)  # fmt: skip
def test_a_key_is_a_quoted_string_or_a_token(value: str, key: str) -> None:
    assert key_of(value) == key


def test_a_call_without_the_header_has_no_key() -> None:
    assert key_of() is None


@pytest.mark.parametrize(
    "values",
    [
        ("",), ('""',), ("a b",), ('"a',), ('a"',), (r'"a\b"',), ('"é"',), ('"a\x7f"',), ("k" * 256,), ("a", "a"),
        ('"a";x=1',), ("a, b",),
    ],
)  # fmt: skip
def test_anything_else_is_no_key(values: tuple[str, ...]) -> None:
    with pytest.raises(GateError, match="invalid_idempotency_key"):
        key_of(*values)


async def keyed(agent: Agent, key: str = '"k"', path: str = PATH, body: object = None) -> Answer:
    headers = signed(agent.key, "POST", path, agent.token, now=agent.core.clock.right)
    return await agent.core.ask("POST", path, {"n": 1} if body is None else body, [*headers, ("idempotency-key", key)])


def shown(answer: Answer) -> tuple[int, str | None, bool]:
    body = msgspec.json.decode(answer.body)
    return answer.status, body.get("error"), dict(answer.headers).get("Idempotent-Replayed") == "true"


async def intents(core: Core) -> int:
    return len([one for one in await core.events(event_type="ActionCall") if "intent_id" in one])


async def test_a_call_that_was_executed_is_answered_with_its_receipt_and_costs_nothing(core: Core) -> None:
    agent = await core.agent(max_calls=1)
    first = await keyed(agent)
    assert shown(first) == (200, None, False)
    for key in ('"k"', "k"):
        again = await keyed(agent, key)
        assert shown(again) == (409, "already_executed", True)
        assert dict(again.headers)["X-Receipt-Id"] == msgspec.json.decode(first.body)["receipt_id"]
    assert (await intents(core), await core.remaining(agent)) == (1, 0)
    event = (await core.events(event_type="ActionCall"))[0]
    assert (event["decision"], event["error_code"], event["is_repeated"]) == ("deny", "already_executed", True)
    assert shown(await keyed(agent, body={"n": 1.0})) == (409, "already_executed", True), "canonical: the same body"
    assert shown(await keyed(agent, "another")) == (403, "budget_exhausted", False)


async def test_a_held_call_that_was_denied_is_answered_with_its_reason(core: Core) -> None:
    agent = await core.agent()
    core.policy.answer = HOLD
    approval_id = msgspec.json.decode((await keyed(agent)).body)["approval_id"]
    assert (await core.operate("POST", f"/v1/approvals/{approval_id}/deny", {"reason": "not today"}))[0] == 200
    denied = await keyed(agent)
    assert shown(denied) == (403, "policy_denied", True)
    assert msgspec.json.decode(denied.body)["deny_reason"] == "not today"


async def test_a_call_whose_end_is_not_known_says_when_to_ask_again(core: Core) -> None:
    agent = await core.agent()
    core.client.faults["Close"] = refuses(NotaryUnavailable("the disk is full"))
    assert shown(await keyed(agent)) == (500, "evidence_persistence_failed", False), "its own key is no earlier call"
    core.client.faults.clear()
    again = await keyed(agent)
    assert (shown(again), dict(again.headers)["Retry-After"]) == ((409, "call_in_progress", False), "1")


async def test_an_approved_call_whose_end_is_not_known_names_its_intent(core: Core) -> None:
    agent = await core.agent()
    core.policy.answer = HOLD
    approval_id = msgspec.json.decode((await keyed(agent)).body)["approval_id"]
    core.client.faults["Close"] = refuses(NotaryUnavailable("the disk is full"))
    assert (await approve(core, approval_id))[0] == 500
    await core.services.upkeep.round()
    core.client.faults.clear()
    (intent,) = (await core.operate("GET", "/v1/admin/intents"))[1]["intents"]
    again = await keyed(agent)
    assert shown(again) == (409, "outcome_unknown", True)
    assert dict(again.headers)["X-Intent-Id"] == intent["intent_id"]


async def test_a_wrong_key_is_refused_with_an_event(core: Core) -> None:
    agent = await core.agent()
    assert shown(await keyed(agent, "a b")) == (400, "invalid_idempotency_key", False)
    event: dict[str, Any] = (await core.events(event_type="ActionCall"))[0]
    assert (event["decision"], event["error_code"]) == ("deny", "invalid_idempotency_key")


async def test_a_call_that_failed_is_answered_with_the_same_headers(tmp_path: Path) -> None:
    async with front_core(tmp_path, workers=0) as core:
        failure = CallFailure("upstream_reset", "unknown")
        closed = Closed("grant_1", "rcpt_1", "provider_failure", "host_io", "skipped", {}, None, failure=failure)
        repeated = RepeatedCall("intent_1", None, "trc_1", closed)
        with pytest.raises(GateError, match="action_execution_failed") as raised:
            await outcome_of(core.notary, CallRecord("echo", core.services.pipeline.weakened), repeated)
        assert raised.value.headers() == (
            ("X-Receipt-Id", "rcpt_1"), *failure.headers(), ("Idempotent-Replayed", "true"),
        )  # fmt: skip


def test_the_codes_of_repeated_calls_are_among_those_of_execute() -> None:
    assert {"call_in_progress", "already_executed", "approval_expired", "outcome_unknown"} <= set(CALL)
    assert CallKey("k") == CallKey("k", keeps_output=False)
