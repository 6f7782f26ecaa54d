"""Calls on their way through workers: given ahead, passed on, cut, and never answered with what is not in evidence."""

import signal
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio
from msgspec.structs import force_setattr, replace

from frontend.deadlines import Deadlines
from frontend.notary.errors import NotaryRefused, NotaryUnavailable
from frontend.pool.channel import WorkerChannel
from ipc.channel.framing import FrameError
from ipc.limits import AHEAD_BYTES
from ipc.messages.notarising import WorkerEnded
from ipc.operations.calls import Withdrawn
from ipc.process.private_files import write_private
from ipc.settings import SecretSettings
from tests.support.breakable_notary import Asking
from tests.support.coded import Coded
from tests.support.front_core import ALLOW, Agent, Core, action, front_core, refuses
from tests.support.held_calls import approve, held, reaching, state_of
from tests.support.logs import capture_logs
from tests.support.patience import PATIENT
from tests.support.worker_desk import until

Answers = dict[str, tuple[int, Any]]
FAILED = (502, {"error": "action_execution_failed"})
SHORT_GRACE = replace(PATIENT, pool=replace(PATIENT.pool, grace_seconds=0.1))


class Behind:
    """One worker that runs a call which takes long, and one, perhaps approved, that was given to it ahead."""

    def __init__(self, core: Core, first: Agent, second: Agent, approval_id: str | None) -> None:
        self.core, self.first, self.second, self.approval_id = core, first, second, approval_id
        self.answers: Answers = {}
        self.second_scope = trio.CancelScope()

    async def call_first(self) -> None:
        self.answers["first"] = await self.first.call("wait")

    async def call_second(self) -> None:
        with self.second_scope:
            if self.approval_id is None:
                self.answers["second"] = await self.second.call("echo")
            else:
                self.answers["second"] = await self.core.operate("POST", f"/v1/approvals/{self.approval_id}/approve")


@asynccontextmanager
async def behind(
    folder: Path, deadlines: Deadlines = PATIENT, *, is_approved: bool = False
) -> AsyncIterator[Behind]:  # fmt: skip
    """Both under way; the first goes on at the end."""
    async with front_core(folder, action(), action("wait"), deadlines=deadlines) as core:
        second, approval_id = await held(core) if is_approved else (await core.agent(max_calls=3), None)
        core.policy.answer = ALLOW
        both = Behind(core, await core.agent(max_calls=3), second, approval_id)
        unheard, hears = list[int](), core.client._begun

        def hears_later(number: int) -> None:  # or the worker might count as slow before the second is given to it
            unheard.append(number)

        core.client._begun = hears_later  # type: ignore[method-assign]
        async with trio.open_nursery() as nursery:
            nursery.start_soon(both.call_first)
            await until(lambda: core.desk.idle() == 0)
            nursery.start_soon(both.call_second)
            with trio.fail_after(60):
                while core.client.asked.count("Open") < 2:
                    await trio.lowlevel.checkpoint()
            core.client._begun = hears  # type: ignore[method-assign]
            for number in unheard:
                hears(number)
            yield both
            core.desk.go_on("compute-1")
        assert both.answers["first"][0] == 200
        assert ("compute-1", "no result in time") not in core.desk.kills


async def test_a_call_that_waits_for_a_long_one_is_passed_on_to_another_worker(tmp_path: Path) -> None:
    async with behind(tmp_path) as both:
        core = both.core
        await until(lambda: core.services.pools.census()["compute"].waiting == 1)
        assert await core.unresolved() == 2, "it keeps its intent"
        core.desk.start()
        await until(lambda: "second" in both.answers)
        assert both.answers["second"][0] == 200
        assert core.client.asked.count("Assign") == 1
        assert core.client.asked.count("Open") == 2
        (event,) = await core.events(session_id=both.second.session_id, event_type="ActionCall")
        assert event["decision"] == "allow"
        assert await core.remaining(both.second) == 2


async def test_a_call_that_waits_for_another_worker_is_not_passed_on_after_a_revocation(tmp_path: Path) -> None:
    async with behind(tmp_path) as both:
        core = both.core
        await until(lambda: core.services.pools.census()["compute"].waiting == 1)
        assert (await core.operate("POST", "/v1/admin/revoke-all"))[0] == 200
        core.desk.start()
        await until(lambda: "second" in both.answers)
        assert both.answers["second"][0] == 401
        assert core.client.asked.count("Assign") == 0
        (event,) = await core.events(session_id=both.second.session_id, event_type="ActionCall")
        assert (event["decision"], event["error_code"]) == ("deny", "invalid_lease")


async def test_a_call_that_no_worker_begins_is_overloaded_given_back_and_in_evidence(tmp_path: Path) -> None:
    async with behind(tmp_path, replace(PATIENT, calls=replace(PATIENT.calls, max_workers=1))) as both:
        core = both.core
        await until(lambda: "second" in both.answers)
        assert both.answers["second"] == (503, {"error": "overloaded"})
        assert core.client.asked.count("Withdraw") == 1
        (event,) = await core.events(session_id=both.second.session_id, event_type="ActionCall")
        assert (event["decision"], event["error_code"]) == ("error", "overloaded")
        assert await core.remaining(both.second) == 3
        assert await core.unresolved() == 1, "the other call's"
    assert core.desk.kills == []


@pytest.mark.parametrize("is_approved", [False, True])
@pytest.mark.parametrize("has_ended", [True, False])
async def test_a_call_that_a_next_notary_ends_as_the_front_gives_it_up_has_one_event(
    tmp_path: Path, has_ended: bool, is_approved: bool
) -> None:
    """That notary does not know whether a worker has begun it."""

    async def by_the_next(withdraw: Asking, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Withdrawn:
        await withdraw(*args, **kwargs)  # which writes the event
        if has_ended:
            raise NotaryRefused("no such intent is open")
        return Withdrawn(is_abandoned=False)

    alone = replace(PATIENT, calls=replace(PATIENT.calls, max_workers=1))
    async with behind(tmp_path, alone, is_approved=is_approved) as both:
        core = both.core
        core.client.faults["Withdraw"] = by_the_next
        await until(lambda: "second" in both.answers)
        assert both.answers["second"] == (503, {"error": "overloaded"})
        events = await core.events(session_id=both.second.session_id, event_type="ActionCall")
        assert [event["decision"] for event in events] == ["error"] + ["pending_approval"] * is_approved
        assert await core.remaining(both.second) == 3
        if both.approval_id is not None:
            assert await state_of(core, both.approval_id) == "failed"


async def test_a_call_that_is_cut_while_it_waits_for_another_worker_is_given_back(tmp_path: Path) -> None:
    async with behind(tmp_path) as both:
        core = both.core
        await until(lambda: core.services.pools.census()["compute"].waiting == 1)
        both.second_scope.cancel()
        await until(lambda: both.second_scope.cancelled_caught)
        assert core.client.asked.count("Withdraw") == 1
        (event,) = await core.events(session_id=both.second.session_id, event_type="ActionCall")
        assert (event["decision"], event["error_code"]) == ("error", "draining")
        assert (await core.remaining(both.second), await core.unresolved()) == (3, 1)


async def test_a_call_that_goes_through_no_proxy_runs_while_the_proxy_is_down(core: Core) -> None:
    force_setattr(core.services.pipeline.execution, "is_proxy_down", lambda: True)
    assert (await (await core.agent()).call())[0] == 200


async def test_a_plan_too_large_for_a_frame_is_an_internal_error_and_costs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def give(*_: object) -> None:
        raise FrameError("too large")

    monkeypatch.setattr(WorkerChannel, "give", give)
    async with front_core(tmp_path, action()) as core:
        agent = await core.agent(max_calls=2)
        assert await agent.call() == (500, {"error": "internal_error"})
        (event,) = await core.events(session_id=agent.session_id, event_type="ActionCall")
        assert (event["decision"], event["error_code"], event["reason"]) == ("error", "internal_error", "too large")
        assert (await core.remaining(agent), await core.unresolved()) == (2, 0)


async def test_a_call_with_a_large_request_is_not_given_ahead(tmp_path: Path) -> None:
    io = {"max_request_bytes": 2 * AHEAD_BYTES, "request_schema": {"type": "object", "required": ["n"]}}
    async with front_core(tmp_path, action(io=io), action("wait")) as core, trio.open_nursery() as nursery:
        agent = await core.agent()
        nursery.start_soon(agent.call, "wait")
        await until(lambda: core.desk.idle() == 0)
        nursery.start_soon(agent.call, "echo", {"n": "x" * AHEAD_BYTES})
        await until(lambda: core.services.pools.census()["compute"].waiting == 1)
        assert core.client.asked.count("Open") == 1
        core.desk.go_on("compute-1")


async def test_a_worker_that_the_notary_does_not_know_is_replaced_by_another_one(tmp_path: Path) -> None:
    async with front_core(tmp_path, workers=2) as core:
        agent = await core.agent(max_calls=3)
        unknown = core.services.pools._pools["compute"]._unused[-1].worker_id  # the next one to be taken
        core.desk.processes[unknown].send_signal(signal.SIGSTOP)  # it would leave, and be missed sooner
        core.notary_thread.tell(WorkerEnded(unknown, "SIGKILL"))
        assert (await agent.call())[0] == 200
        assert core.client.asked.count("Open") == 2
        assert core.desk.kills == [(unknown, "the notary does not know it")]
        (event,) = await core.events(event_type="ActionCall")
        assert event["decision"] == "allow"
        assert (await core.remaining(agent), await core.unresolved()) == (2, 0)


async def test_an_output_that_is_not_in_evidence_is_never_answered(tmp_path: Path) -> None:
    async with front_core(tmp_path, action("another-output")) as core:
        agent = await core.agent(max_calls=3)
        with capture_logs() as logs:
            assert await agent.call("another-output") == FAILED
        assert [one["log_level"] for one in logs if one["event"] == "a worker answered what is not in evidence"] == [
            "error"
        ]
        assert core.desk.kills == [("compute-1", "another output than the one it told the notary")]
        assert await core.remaining(agent) == 2


async def test_an_answer_that_breaks_its_response_schema_is_given_with_a_warning_where_that_only_warns(
    tmp_path: Path,
) -> None:
    async with front_core(tmp_path, action("warns"), action("echo")) as core:
        agent = await core.agent()
        with capture_logs() as logs:
            for action_id in ("warns", "echo"):
                assert (await agent.call(action_id))[0] == 200
        (line,) = [one for one in logs if one["event"] == "an answer breaks its response schema"]
        assert (line["action_id"], line["violation"]) == ("warns", "$.n: is no text")
        violations = core.services.metrics.schema_violations
        assert (violations.value("warns"), violations.value("echo")) == (1, 0)


async def test_a_worker_whose_call_takes_long_is_given_none_ahead(tmp_path: Path) -> None:
    async with front_core(tmp_path, action(), action("wait")) as core, trio.open_nursery() as nursery:
        agent, begun = await core.agent(), trio.Event()
        core.client.on_begun = begun.set
        nursery.start_soon(agent.call, "wait")
        with trio.fail_after(60):
            await begun.wait()
        nursery.start_soon(agent.call)
        await until(lambda: core.services.pools.census()["compute"].waiting == 1)
        assert core.client.asked.count("Open") == 1
        core.desk.go_on("compute-1")


async def test_a_worker_whose_call_has_no_evidence_serves_the_next_one(core: Core) -> None:
    agent = await core.agent()
    core.client.faults["Close"] = refuses(NotaryUnavailable("the disk is full"))
    assert (await agent.call())[0] == 500
    core.client.faults.clear()
    assert (await agent.call())[0] == 200
    assert (core.desk.kills, core.desk.ended) == ([], {})


async def test_an_output_that_does_not_arrive_is_a_failure_with_its_receipt(tmp_path: Path) -> None:
    async with front_core(tmp_path, action("nothing-to-its-front"), deadlines=SHORT_GRACE) as core:
        agent = await core.agent(max_calls=3)
        with capture_logs() as logs:
            answer = await agent.send("POST", "/v1/actions/nothing-to-its-front/execute", {"n": 1})
        assert (answer.status, msgspec.json.decode(answer.body)) == FAILED
        told = dict(answer.headers)
        assert (told["X-Failure"], told["X-May-Have-Run"]) == ("worker_lost", "yes"), "its receipt says that it has run"
        assert "the output of a call did not arrive" in [one["event"] for one in logs]
        (event,) = await core.events(event_type="ActionCall")
        assert await core.receipt(event["receipt_id"]) is not None
        assert core.desk.kills == [("compute-1", "no result in time")]


SHORT = {"timeout_seconds": 1}


async def test_a_worker_that_does_not_end_its_call_in_time_is_killed_and_the_call_is_lost_with_a_receipt(
    tmp_path: Path,
) -> None:
    async with front_core(tmp_path, action("hang", resource_limits=SHORT), deadlines=SHORT_GRACE) as core:
        agent = await core.agent(max_calls=3)
        with capture_logs() as logs:
            assert await agent.call("hang") == FAILED
        assert "the output of a call did not arrive" not in [one["event"] for one in logs], "there is none"
        assert core.desk.kills == [("compute-1", "no result in time")]
        (event,) = await core.events(event_type="ActionCall")
        assert (event["decision"], event["error_code"]) == ("error", "action_execution_failed")
        assert (await core.remaining(agent), await core.unresolved()) == (2, 0)


async def test_a_notary_that_is_silent_about_the_end_of_a_call_makes_it_a_failure_without_evidence(
    tmp_path: Path,
) -> None:
    goes_on = threading.Event()
    async with front_core(tmp_path, action("wait", resource_limits=SHORT), deadlines=SHORT_GRACE) as core:
        agent = await core.agent(max_calls=3)

        def holds_up(_intent_id: str) -> None:
            goes_on.wait(60)

        def goes_on_without_patience() -> None:
            core.client._wait_seconds = 0.3
            core.desk.go_on("compute-1")

        core.notary_thread.guard_closes(holds_up)
        core.client.on_begun = goes_on_without_patience
        try:
            assert await agent.call("wait") == (500, {"error": "evidence_persistence_failed"})
        finally:
            core.client._wait_seconds = 60.0
            goes_on.set()
        assert core.desk.kills == [("compute-1", "no result in time")]
        assert await core.remaining(agent) == 2
        assert "Withdraw" not in core.client.asked, "it has begun"


async def test_nothing_is_dispatched_through_a_proxy_that_is_known_to_be_down(tmp_path: Path) -> None:
    proxied = reaching() | {"egress": {"profile": "proxy_allowlist", "allowed_domains": ["known.example"]}}
    async with front_core(tmp_path, proxied, workers=0, egress_proxy_url="http://[::1]:1") as core:
        agent = await core.agent(max_calls=3)
        assert await agent.call("echo", {"host": "known.example"}) == FAILED
        assert "Open" not in core.client.asked
        assert await core.remaining(agent) == 3
        (event,) = await core.events(event_type="ActionCall")
        assert (event["decision"], event["error_code"]) == ("error", "action_execution_failed")
        assert event["reason"] == "the egress proxy can't be reached: it answers nothing"
        agent, approval_id = await held(core, host="new.example")
        assert await approve(core, approval_id) == FAILED
        assert await state_of(core, approval_id) == "pending", "its operator may try again"


# ------------------------------------------------------------------ secrets, and revocation while a call waits


def with_secrets(folder: Path) -> SecretSettings:
    file = folder / "secrets.json"
    write_private(file, b'{"token":"s3cret"}')
    return SecretSettings(str(file))


def needing(**changes: Any) -> dict[str, Any]:
    return action("secrets", secrets=[{"name": "token"}], **changes)


async def test_a_worker_gets_the_secrets_of_its_call_and_of_no_other(tmp_path: Path) -> None:
    async with front_core(tmp_path, action(), needing(), secrets=with_secrets(tmp_path)) as core:
        agent = await core.agent()
        status, body = await agent.call("secrets")
        assert (status, body["output"]) == (200, {"token": "s3cret"})
        assert (await agent.call())[1]["output"] == {"n": 1}


async def test_secrets_that_can_not_be_read_have_a_name_of_their_own_and_nothing_is_opened(tmp_path: Path) -> None:
    async with front_core(tmp_path, needing(), secrets=with_secrets(tmp_path)) as core:
        (tmp_path / "secrets.json").chmod(0o644)
        assert await (await core.agent()).call("secrets") == (503, {"error": "secrets_unavailable"})
        assert "Open" not in core.client.asked
        (event,) = await core.events(event_type="ActionCall")
        assert event["error_code"] == "secrets_unavailable"
        assert "secrets.json" in event["reason"]


async def test_a_call_with_secrets_is_not_given_ahead_and_is_refused_if_it_was_revoked_while_it_waited(
    tmp_path: Path,
) -> None:
    async with front_core(tmp_path, needing(), action("wait"), secrets=with_secrets(tmp_path)) as core:
        agent = await core.agent()
        answers: list[tuple[int, Any]] = []

        async def call() -> None:
            answers.append(await agent.call("secrets"))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(agent.call, "wait")
            await until(lambda: core.desk.idle() == 0)
            nursery.start_soon(call)
            await until(lambda: core.services.pools.census()["compute"].waiting == 1)
            assert core.client.asked.count("Open") == 1
            await core.raise_epoch()
            await until(lambda: core.services.authentication.known.epoch == 1)
            core.desk.go_on("compute-1")
        assert answers == [(401, Coded("invalid_lease"))]
        assert core.client.asked.count("Open") == 1
