"""Health that is fresh, shared, and never waits long for a dependency that is stuck."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio
import trio.testing
from msgspec.structs import replace

from frontend.health.pulse import ClockTrouble, Health, Pulse
from frontend.notary.errors import NotaryUnavailable
from ipc.operations.status import ClockTold
from tests.support.front_core import Core, front_core, hangs, refuses
from tests.support.held_calls import held
from tests.support.logs import capture_logs
from tests.support.patience import PATIENT

pytestmark = pytest.mark.front(workers=0)


async def ready(core: Core) -> tuple[int, dict[str, Any]]:
    object.__setattr__(core.services, "policy", core.policy)
    answer = await core.ask("GET", "/readyz")
    return answer.status, msgspec.json.decode(answer.body)


async def test_a_fresh_failure_shows_in_the_next_answer(core: Core) -> None:
    assert (await ready(core))[0] == 200
    core.client.faults["ReadStore"] = refuses(NotaryUnavailable("gone"))
    assert (await ready(core))[1] | {"status": "", "actions_registered": 0} == {
        "status": "", "redis": False, "opa": True, "ledger": True, "approval_store": False, "egress_proxy": None,
        "actions_registered": 0, "crash_loops": [], "ledger_full": False,
        "clock_error": None, "draining": False,
    }  # fmt: skip
    core.client.faults.clear()
    core.client.faults["ReadLedger"] = refuses(NotaryUnavailable("gone"))
    status, body = await ready(core)
    assert (status, body["status"], body["redis"], body["ledger"]) == (503, "not_ready", True, False)
    core.client.faults.clear()
    core.policy.is_available = False
    assert (await ready(core))[1]["opa"] is False


async def test_a_status_says_what_it_can_when_a_store_fails(tmp_path: Path) -> None:
    async with front_core(tmp_path) as core:
        await core.raise_epoch()
        await held(core)
        status, body = await core.operate("GET", "/v1/admin/status")
        counts = ("pending_approvals", "revocation_epoch", "unresolved_intents")
        assert (status, [body[name] for name in counts]) == (200, [1, 1, 0])
        core.client.faults["ReadStore"] = refuses(NotaryUnavailable("gone"))
        _, body = await core.operate("GET", "/v1/admin/status")
        assert [body[name] for name in counts] == [None, None, 0]
        assert (body["status"], body["dependencies"]["redis"]) == ("degraded", False)
        core.services.admission.drain()
        assert (await core.operate("GET", "/v1/admin/status"))[1]["status"] == "draining"


async def test_a_hanging_store_delays_callers_briefly(tmp_path: Path) -> None:
    deadlines = replace(PATIENT, health=replace(PATIENT.health, overdue_seconds=0.2))
    async with front_core(tmp_path, workers=0, deadlines=deadlines) as core:
        core.client.faults["ReadStore"] = hangs(trio.Event())
        for _ in range(2):
            with trio.fail_after(60):
                assert (await ready(core))[1]["redis"] is False
        assert core.services.front_status().held == -1


async def test_a_flood_of_questions_is_one_question_at_a_time(tmp_path: Path) -> None:
    deadlines = replace(PATIENT, health=replace(PATIENT.health, round_seconds=600.0))
    async with front_core(tmp_path, workers=0, deadlines=deadlines) as core:
        core.client.asked.clear()
        async with trio.open_nursery() as nursery:
            for _ in range(500):
                nursery.start_soon(core.ask, "GET", "/readyz")
        assert core.client.asked.count("ReadStore") <= 5


async def test_the_supervisors_status_line_asks_no_process(tmp_path: Path) -> None:
    async with front_core(tmp_path) as core:
        await held(core)
        await ready(core)
        core.client.asked.clear()
        assert core.services.front_status().held == 1
        assert core.client.asked == []


async def test_an_answer_is_never_older_than_its_question(autojump_clock: trio.testing.MockClock) -> None:
    value = 0

    async def ask() -> int:
        current = value
        await trio.sleep(0.3)
        return current

    pulse = Pulse("it", ask)
    async with trio.open_nursery() as nursery:
        await nursery.start(pulse.run)
        for value in range(1, 20):
            await trio.sleep(value / 17)
            assert await pulse.fresh() == value  # even when the pulse was asking as the value changed
        nursery.cancel_scope.cancel()


async def test_a_pulse_survives_whatever_its_dependency_raises(autojump_clock: trio.testing.MockClock) -> None:
    answers: list[int | Exception] = [1, ValueError("strange"), 2]

    async def ask() -> int:
        await trio.lowlevel.checkpoint()
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    pulse = Pulse("it", ask)
    async with trio.open_nursery() as nursery:
        await nursery.start(pulse.run)
        assert (pulse.found, await pulse.fresh(), await pulse.fresh()) == (1, None, 2)
        nursery.cancel_scope.cancel()


async def test_the_log_says_once_that_a_dependency_is_down_and_once_that_it_is_back(
    autojump_clock: trio.testing.MockClock,
) -> None:
    is_up = False

    async def ask() -> int:
        await trio.lowlevel.checkpoint()
        if not is_up:
            raise OSError("no way")
        return 1

    pulse = Pulse("it", ask)
    with capture_logs() as logs:
        async with trio.open_nursery() as nursery:
            await nursery.start(pulse.run)
            assert await pulse.fresh() is None
            is_up = True
            assert (await pulse.fresh(), await pulse.fresh()) == (1, 1)
            nursery.cancel_scope.cancel()
    assert [(one["log_level"], one["event"]) for one in logs] == [
        ("warning", "it is down"),
        ("info", "it answers again"),
    ]


@pytest.mark.parametrize(("name", "code", "said"), [("template", 503, "not_ready"), ("deliverer", 200, "degraded")])
async def test_a_process_in_a_crash_loop_is_named_and_fails_readiness_unless_it_is_a_deliverer(
    core: Core, name: str, code: int, said: str
) -> None:
    core.services.crash_loops = (name,)
    status, body = await ready(core)
    assert (status, body["status"], body["crash_loops"], body["ledger"]) == (code, said, [name], True)
    _, report = await core.operate("GET", "/v1/admin/status")
    assert (report["status"], report["crash_loops"]) == ("degraded", [name])
    core.services.crash_loops = (name, "policy 1")
    assert (await ready(core))[0] == 503
    core.services.crash_loops = ()
    assert (await ready(core))[0] == 200


async def test_a_clock_that_is_wrong_shows_with_the_moment_until_which_it_is(core: Core) -> None:
    core.clock.is_broken, core.clock.until = True, 1_790_000_000.0
    status, body = await ready(core)
    assert (status, body["status"], body["redis"], body["ledger"]) == (503, "not_ready", True, True)
    cause = "the wall clock has stepped back"
    assert body["clock_error"] == {"cause": cause, "until": "2026-09-21T14:13:20.000Z"}
    assert core.services.front_status().clock_error == ClockTold(cause, 1_790_000_000.0)
    assert core.services.metrics.readiness_degraded.value("clock") == 1
    core.clock.is_broken = False
    assert (await ready(core))[0] == 200


async def test_a_notary_whose_clock_is_wrong_shows_too(core: Core) -> None:

    async def tells_no_time(operation: Any, args: Any, kwargs: Any) -> Any:
        status = await operation(*args, **kwargs)
        return msgspec.structs.replace(status, clock_error=ClockTold("the wall clock has stepped back", None))

    core.client.faults["ReadLedger"] = tells_no_time
    status, body = await ready(core)
    assert (status, body["clock_error"]) == (503, {"cause": "the wall clock has stepped back", "until": None})
    _, report = await core.operate("GET", "/v1/admin/status")
    assert (report["status"], report["clock_error"]) == ("degraded", body["clock_error"])


async def test_a_gateway_that_drains_is_not_ready_and_alive(core: Core) -> None:
    assert (await ready(core))[1]["draining"] is False
    core.services.admission.drain()
    status, body = await ready(core)
    assert (status, body["status"], body["draining"], body["redis"]) == (503, "not_ready", True, True)
    assert (await core.ask("GET", "/healthz")).status == 200


def test_a_status_is_ok_only_while_store_policy_and_ledger_work() -> None:
    well = Health(store=True, policy=True, ledger=True, egress_proxy=False, actions=1)
    assert well.status(draining=False) == "ok"
    broken = [
        replace(well, store=False), replace(well, policy=False), replace(well, ledger=False),
        replace(well, is_ledger_full=True), replace(well, clock=ClockTrouble("it stepped back", None)),
    ]  # fmt: skip
    assert {one.status(draining=False) for one in broken} == {"degraded"}
    assert {one.status(draining=True) for one in (well, *broken)} == {"draining"}
