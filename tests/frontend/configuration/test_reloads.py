"""Reloads that operators ask for, before a supervisor that answers, refuses, is silent or slow."""

from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest
import trio

from frontend.configuration.active import Commit, Configuration, ConfigurationRefused, Fresh
from frontend.configuration.current import Current
from frontend.deadlines import ControlDeadlines
from frontend.notary.errors import NotaryUnavailable
from frontend.policy.acl import PolicyFiles
from frontend.policy.data import PolicyData
from frontend.policy.engine import PolicySources
from ipc.messages.control import Reload, ReloadDone, RequestReload
from ipc.reloadable import reloadable_of
from ipc.settings import Settings
from tests.support.front_core import Core, ScriptedPolicy, refuses
from tests.support.patience import PATIENT

pytestmark = pytest.mark.front(workers=0)

RELOAD = ("POST", "/v1/admin/reload")
FAILED = (500, {"error": "reload_failed"})
NOTHING = Fresh()
FULL = NotaryUnavailable("the disk is full")


class Loading:
    """A configuration whose load ends as the test sets. `loads` counts those that came into force."""

    def __init__(self, settings: Settings, outcome: Exception | None = None) -> None:
        self.current = Current(settings)
        self.policy = ScriptedPolicy()
        self.outcome = outcome
        self.loads = 0
        self.fresh = NOTHING

    async def load(self, commit: Commit | None = None, *, within: float = 0, fresh: Fresh = NOTHING) -> None:
        await trio.lowlevel.checkpoint()
        self.fresh = fresh
        if self.outcome is not None:
            raise self.outcome
        if commit is not None:
            await commit(self.current.registry, PolicyFiles(PolicySources({}, "{}", "p2"), PolicyData("p2")))
        self.loads += 1


class Supervisor:
    def __init__(self, core: Core, loading: Loading) -> None:
        self.core = core
        self.loading = loading
        self.requests: list[RequestReload] = []
        self.serves: Callable[[RequestReload], Awaitable[ReloadDone | None]] = self.reloads

    async def reloads(self, request: RequestReload) -> None:
        """As the real one: every front reloads, and what it says goes to who asked."""
        await self.core.services.reloads.perform(
            Reload(request.request_id, request.requested_by, request.operator_jkt, request.proof_jti)
        )

    async def run(self) -> None:
        async for message in self.core.services.control._unsent_out:
            if isinstance(message, RequestReload):
                self.requests.append(message)
                answer = await self.serves(message)
            else:
                answer = message if isinstance(message, ReloadDone) else None
            if answer is not None:
                self.core.services.control._hand_on(answer, cast(Any, None))


@pytest.fixture
async def supervisor(core: Core, nursery: trio.Nursery) -> Supervisor:
    loading = Loading(core.services.settings)
    core.services.configuration = core.services.reloads.configuration = cast(Configuration, loading)
    supervisor = Supervisor(core, loading)
    nursery.start_soon(supervisor.run)
    return supervisor


def answers(error: str | None) -> Callable[[RequestReload], Awaitable[ReloadDone]]:
    """An outcome of the supervisor's own, which no front has seen."""

    async def serve(request: RequestReload) -> ReloadDone:
        await trio.lowlevel.checkpoint()
        return ReloadDone(request.request_id, error, 0, "")

    return serve


async def told(core: Core) -> list[dict[str, Any]]:
    return list(reversed(await core.events(event_type="AdminReload")))


async def test_a_reload_is_answered_with_the_state_in_force_and_logged_with_its_operator(
    supervisor: Supervisor,
) -> None:
    core = supervisor.core
    status, body = await core.operate(*RELOAD)
    assert (status, body | {"reloaded_at": ""}) == (
        200,
        {
            "manifests_loaded": 0, "policy_reloaded": True, "reloaded_at": "", "actions": 0,
            "policy_version": "p1", "changed": [], "needs_restart": [],
        },
    )  # fmt: skip
    assert body["reloaded_at"].endswith("Z")
    (event,) = await told(core)
    assert (event["decision"], event["principal"], event["policy_version"]) == ("allow", "operator:op", "p2")
    assert event["operator_sender_binding"] == core.operator_key.jkt
    assert event["operator_proof_jti"] == supervisor.requests[0].proof_jti
    assert event["identity_method"] == "operator"


@pytest.mark.parametrize(
    ("outcome", "reason"),
    [
        (ConfigurationRefused(["a.yaml:1 no", "b.yaml:2 no"]), "a.yaml:1 no; b.yaml:2 no"),
        (RuntimeError("ours"), "unexpected error: RuntimeError"),
    ],
    ids=["refused", "a fault of ours"],
)
async def test_a_reload_that_fails_is_500_with_one_event_that_says_why(
    supervisor: Supervisor, outcome: Exception, reason: str
) -> None:
    supervisor.loading.outcome = outcome
    assert await supervisor.core.operate(*RELOAD) == FAILED
    (event,) = await told(supervisor.core)
    assert (event["decision"], event["reason"], event["error_code"]) == ("error", reason, "reload_failed")
    assert event["operator_proof_jti"] == supervisor.requests[0].proof_jti


@pytest.mark.parametrize("error", ["too many reloads are waiting", "no front is serving", "a front did not answer"])
async def test_a_reload_that_was_never_performed_here_leaves_its_event_all_the_same(
    supervisor: Supervisor, error: str
) -> None:
    supervisor.serves = answers(error)
    assert await supervisor.core.operate(*RELOAD) == FAILED
    (event,) = await told(supervisor.core)
    assert (event["decision"], event["reason"], event["principal"]) == ("error", error, "operator:op")


async def test_a_supervisor_that_does_not_answer_is_an_answer_too(supervisor: Supervisor) -> None:
    async def silent(_request: RequestReload) -> None:
        await trio.lowlevel.checkpoint()

    supervisor.core.services.control.deadlines = ControlDeadlines(reload_seconds=0.1)
    supervisor.serves = silent
    assert await supervisor.core.operate(*RELOAD) == FAILED
    (event,) = await told(supervisor.core)
    assert "no answer to a reload within 0.1 s" in event["reason"]
    supervisor.serves = supervisor.reloads
    supervisor.core.services.control.deadlines = PATIENT.control
    assert (await supervisor.core.operate(*RELOAD))[0] == 200
    assert supervisor.core.services.control._answers == {}


async def test_nothing_comes_into_force_without_its_event(supervisor: Supervisor) -> None:
    supervisor.core.client.faults["WriteEvent"] = refuses(FULL)
    assert await supervisor.core.operate(*RELOAD) == FAILED
    assert supervisor.loading.loads == 0
    await supervisor.core.services.reloads.perform(Reload("hangup-1", "signal"))
    assert supervisor.loading.loads == 0
    supervisor.core.client.faults.clear()
    assert await told(supervisor.core) == []
    assert (await supervisor.core.operate(*RELOAD))[0] == 200
    assert supervisor.loading.loads == 1


async def test_reloads_at_once_are_each_answered_and_told(supervisor: Supervisor) -> None:
    statuses: list[int] = []

    async def ask() -> None:
        statuses.append((await supervisor.core.operate(*RELOAD))[0])

    async with trio.open_nursery() as nursery:
        for _ in range(6):
            nursery.start_soon(ask)
    assert statuses == [200] * 6
    assert len({event["operator_proof_jti"] for event in await told(supervisor.core)}) == 6
    assert supervisor.loading.loads == 6


async def test_a_gateway_that_drains_still_reloads(supervisor: Supervisor) -> None:
    assert (await supervisor.core.operate("POST", "/v1/admin/drain"))[0] == 200
    assert (await supervisor.core.operate(*RELOAD))[0] == 200
    status = (await supervisor.core.operate("GET", "/v1/admin/status"))[1]
    assert (status["status"], status["draining"]) == ("draining", True), "a reload is no way out of it"


async def test_what_the_configuration_file_says_is_put_in_force_with_the_rest_and_told_by_its_names(
    supervisor: Supervisor,
) -> None:
    core = supervisor.core
    fresh = reloadable_of(core.services.settings)
    asked = Reload(
        "r1", "signal", reloadable=fresh, problems=("a",), changed=("operators",), needs_restart=("b",)
    )  # fmt: skip
    await core.services.reloads.perform(asked)
    assert supervisor.loading.fresh == Fresh(fresh, ("a",))
    (event,) = await told(core)
    assert event["change"] == {"settings": ["operators"], "needs_restart": ["b"]}
