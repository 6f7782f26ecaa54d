"""A whole front in the test's own process, over a real notary and real worker processes.

Requests go in where the HTTP skin hands them on, answers come out as it would send them. A test can break these: any
operation of the notary (`BreakableClient`), the policy engine's answer, the clock, the supervisor's reading.
"""

import atexit
import shutil
import socket
import sqlite3
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import msgspec
import trio
from msgspec import UNSET
from msgspec.structs import force_setattr

from frontend.actions.modules import module_key
from frontend.actions.registry import Registry, load_manifests
from frontend.actions.trust import Trusted
from frontend.api.dispatch import Dispatch
from frontend.clock import ClockError, iso
from frontend.compose import build_services
from frontend.control import SupervisorLink
from frontend.deadlines import Deadlines
from frontend.errors import GateError
from frontend.http.answers import Answer
from frontend.http.peercred import PeerCredentials
from frontend.http.requests import CompleteBody, Request
from frontend.notary.client import NotaryClient
from frontend.policy.engine import Commit, MemoStatus, PolicySources
from frontend.policy.question import BudgetUnread, Decision, Question
from frontend.services import Services
from ipc.evidence.records import EventQuery
from ipc.messages.control import StartFront
from ipc.messages.modules import ModuleVerdict
from ipc.operations.evidence import QueryEvents, ShowReceipt
from ipc.operations.leases import ReadBudget, Revoke
from ipc.operations.operation import A, Operation
from ipc.operations.status import ReadLedger
from ipc.settings import (
    FRONTS,
    IdentitySettings,
    LimitSettings,
    OperatorSettings,
    PoolSettings,
    Settings,
    WorkerSettings,
)
from notary.signing.make_keys import make_keys
from tests.support.breakable_notary import BreakableClient, Fault, does_and_says, hangs, refuses, then
from tests.support.documented import check_answer
from tests.support.manifests import write_manifests
from tests.support.notary_thread import NotaryThread, TiesOf, lost_store, shared_notary
from tests.support.patience import PATIENT
from tests.support.proofs import Key, proof
from tests.support.worker_desk import Desk, until

__all__ = ["BreakableClient", "Fault", "does_and_says", "hangs", "refuses", "then"]  # for those who break a core

BASE = "http://gate.test"
API_KEY = "key-op-0123456789abcdef0123456789abcdef"
DIGEST = "sha256:" + "7" * 64

ALLOW = Decision(True, False, "", "allow", (), "p1")
HOLD = Decision(True, True, "", "hold", (), "p1")
DENY = Decision(False, False, "not you", "acl", (), "p1")


class TestClock:
    """The machine's clock, moved by `ahead` seconds; `is_broken` refuses to tell the time, and `stop` stops it."""

    __test__ = False

    def __init__(self) -> None:
        self.ahead = 0.0
        self.is_broken = False
        self.until: float | None = None
        """While broken: when it is right again."""
        self._stood_at: float | None = None

    def stop(self) -> None:
        """From now on only `ahead` moves it: for tests that come near an instant at which something is over."""
        self._stood_at = time.time()

    @property
    def right(self) -> float:
        """The time, even while the clock is broken."""
        return (time.time() if self._stood_at is None else self._stood_at) + self.ahead

    def now(self) -> float:
        if self.is_broken:
            raise ClockError("the wall clock has stepped back", self.until)
        return self.right

    def follow(self, floor: float) -> None:
        """The test knows better."""

    def iso(self, t: float | None = None) -> str:
        return iso(self.now() if t is None else t)


class ScriptedPolicy:
    """A policy engine with an answer set by the test; `before` is awaited first."""

    policy_version = "p1"
    is_available = True
    memo_status = MemoStatus(False, "it is scripted", 0)

    def __init__(self) -> None:
        self.answer: Decision | Exception = ALLOW
        self.questions: list[Question] = []
        self.loaded: list[PolicySources] = []
        self.refusal: Exception | None = None
        self.reads_budget = False
        self.before: Callable[[], Awaitable[None]] = trio.lowlevel.checkpoint

    async def decide(self, question: Question) -> Decision:
        if self.reads_budget and question.calls_remaining is UNSET:
            raise BudgetUnread
        self.questions.append(question)
        await self.before()
        if isinstance(self.answer, Exception):
            raise self.answer
        return msgspec.structs.replace(self.answer, allowed_sinks=question.requested_sinks)

    async def require_life(self) -> None:
        """It lives as long as it is available."""
        await trio.lowlevel.checkpoint()
        if not self.is_available:
            raise GateError("policy_engine_unavailable", cause="it is scripted so")

    async def load(self, sources: PolicySources, commit: Commit | None = None) -> None:
        """Accept every request, or raise the error that the test has set."""
        await trio.lowlevel.checkpoint()
        if self.refusal is not None:
            raise self.refusal
        if commit is not None:
            await commit()
        self.loaded.append(sources)


def action(action_id: str = "echo", **changes: Any) -> dict[str, Any]:
    """A manifest whose module the echo worker plays; what it does is its id."""
    return {
        "action_id": action_id, "version": "1.0.0", "provider_module_digest": DIGEST, "risk_level": "low",
        "required_imports": [], "verifier_kind": "unverifiable", "resource_limits": {"timeout_seconds": 60},
        "io": {"max_request_bytes": 1024, "request_schema": {"type": "object", "required": ["n"]}},
    } | changes  # fmt: skip


class Core:
    """One front, its parts, and clients for it."""

    def __init__(
        self, services: Services, client: BreakableClient, clock: TestClock, desk: Desk, notarys: NotaryThread
    ) -> None:  # fmt: skip
        self.services = services
        self.notary_thread = notarys
        self.client = client
        self.notary = services.notary
        self.clock = clock
        self.desk = desk
        self.policy = ScriptedPolicy()
        self.deliverer: BreakableClient | None = None
        """The deliverer's way to the notary, where one is at work."""
        self.operator_key = Key()
        self.dispatch = Dispatch(services)
        force_setattr(services.pipeline.deciding, "policy", self.policy)
        force_setattr(services.previewing.deciding, "policy", self.policy)
        force_setattr(services.explaining, "policy", self.policy)
        force_setattr(services.settlement, "policy", self.policy)

    async def ask(
        self, method: str, path: str, body: bytes | object = b"", headers: Iterable[tuple[str, str]] = (), *,
        uid: int | None = None,
    ) -> Answer:  # fmt: skip
        """One request as the skin hands it on, of this user; bodies that are no bytes are sent as JSON."""
        data = body if isinstance(body, bytes) else msgspec.json.encode(body)
        fields, peer = list(headers), None if uid is None else PeerCredentials(1, uid, uid)
        if data:
            fields.append(("content-length", str(len(data))))
        plain, _, query = path.partition("?")
        answer = await self.dispatch.respond(Request(method, plain, query, fields, peer=peer, body=CompleteBody(data)))
        check_answer(method, plain, answer.status, answer.content_type, answer.body)
        return answer

    async def agent(self, max_calls: int | None = None, key: Key | None = None, **how: Any) -> "Agent":
        """A fresh lease, asked for in this way."""
        key = key or Key()
        body: dict[str, Any] = {"scopes": ["tools:call"], "dpop_jwk": key.jwk}
        if max_calls is not None:
            body["budgets"] = {"max_calls": max_calls}
        answer = await self.ask("POST", "/v1/leases", body, **how)
        assert answer.status == 200, answer.body
        lease = msgspec.json.decode(answer.body)
        return Agent(self, key, lease["lease_jwt"], lease["session_id"])

    async def operate(self, method: str, path: str, body: bytes | object = b"") -> tuple[int, Any]:
        """A request of the operator: (status, body)."""
        headers = signed(self.operator_key, method, path, API_KEY, now=self.clock.right)
        answer = await self.ask(method, path, body, headers)
        return answer.status, msgspec.json.decode(answer.body)

    async def events(self, **filters: Any) -> list[dict[str, Any]]:
        """Audit events, newest first, from the ledger itself."""
        found = await self.real.ask(QueryEvents(EventQuery(**filters, limit=1000)))
        return [msgspec.json.decode(event) for event in found.events]

    async def remaining(self, agent: "Agent") -> int:
        """The remaining budget of a session, read from the store itself."""
        budget = await self.real.ask(ReadBudget(agent.session_id))
        assert budget.found
        return int(budget.remaining)

    async def unresolved(self) -> int:
        """Intents that wait for a receipt, from the ledger itself."""
        return (await self.real.ask(ReadLedger())).unresolved

    async def receipt(self, receipt_id: str) -> Any:
        """A receipt, from the ledger itself."""
        shown = await self.real.ask(ShowReceipt(receipt_id))
        return None if shown is None else msgspec.json.decode(shown.receipt)

    async def raise_epoch(self) -> None:
        """As an operator of another front does: every earlier lease and hold ends."""
        await self.real.ask(Revoke(self.services.journal.own_event("AdminRevokeAll")))

    @property
    def real(self) -> "_Unbroken":
        """The notary itself: the faults that the test has set do not apply."""
        return _Unbroken(self.client)


class _Unbroken:
    def __init__(self, client: BreakableClient) -> None:
        self._client = client

    async def ask(self, operation: Operation[A], *, seconds: float | None = None) -> A:
        """Ask without any fault."""
        return await NotaryClient.ask(self._client, operation, seconds=seconds)


class Agent:
    """The holder of one lease."""

    def __init__(self, core: Core, key: Key, token: str, session_id: str) -> None:
        self.core = core
        self.key = key
        self.token = token
        self.session_id = session_id

    async def send(self, method: str, path: str, body: bytes | object = b"", **claims: Any) -> Answer:
        """A request with a fresh proof; `claims` replace the proof's."""
        headers = signed(self.key, method, path, self.token, **({"now": self.core.clock.right} | claims))
        return await self.core.ask(method, path, body, headers)

    async def call(self, action_id: str = "echo", body: bytes | object = None, **claims: Any) -> tuple[int, Any]:
        """Execute: (status, body)."""
        sent = {"n": 1} if body is None else body
        answer = await self.send("POST", f"/v1/actions/{action_id}/execute", sent, **claims)
        return answer.status, msgspec.json.decode(answer.body)


def signed(key: Key, method: str, path: str, token: str, **claims: Any) -> list[tuple[str, str]]:
    """The two headers of a request."""
    return [
        ("authorization", f"DPoP {token}"),
        ("dpop", proof(key, method, BASE + path.partition("?")[0], token, **claims)),
    ]


def settings_of(folder: Path, operator_jkt: str, **changes: Any) -> Settings:
    """Settings of a front whose state is in `folder`."""
    keys = folder / "keys"
    (folder / FRONTS).mkdir(mode=0o700, exist_ok=True)
    whole: dict[str, Any] = {
        "state_dir": str(folder), "public_base_url": BASE, "manifests_dir": str(folder / "actions"),
        "policy_dir": str(folder / "policy"), "lease_signing_key_path": str(keys / "lease.pem"),
        "receipt_signing_key_path": str(keys / "receipt.pem"), "grant_signing_key_path": str(keys / "grant.pem"),
        "receipt_keys_jwks_path": str(folder / "receipt-keys.jwks.json"),
        "identity": IdentitySettings(provider="none"),
        "operators": (OperatorSettings("op", dpop_jkt=operator_jkt, api_key=API_KEY),),
        "limits": LimitSettings(worker_wait_seconds=60.0),
        "workers": WorkerSettings(compute=PoolSettings(min_spare=1, max=2)), "dev_mode": True,
    }  # fmt: skip
    return Settings(**(whole | changes))


def registry_of(
    folder: Path, *manifests: dict[str, Any], verdict: str = "ok", has_proxy: bool = False
) -> Registry:  # fmt: skip
    """These manifests as a front has them once the template has spoken."""
    loaded, problems = load_manifests(write_manifests(folder, *manifests), has_proxy=has_proxy)
    assert not problems, problems
    verdicts = [ModuleVerdict(reference, verdict, reference) for reference, _ in dict.fromkeys(map(module_key, loaded))]
    return Registry.build(loaded, verdicts, Trusted(frozenset({DIGEST})))


def lose_store(folder: Path) -> None:
    """Proofs, budgets, holds and the epoch are gone. For when no notary lives."""
    lose_epoch(folder)
    connection = sqlite3.connect(folder / "ledger.sqlite3")
    with connection:
        for table in ("proofs", "budgets", "approvals"):
            connection.execute(f"DELETE FROM {table}")
    connection.close()


def lose_epoch(folder: Path) -> None:
    """The epoch is gone. For when no notary lives."""
    lost_store(folder)
    connection = sqlite3.connect(folder / "ledger.sqlite3")
    with connection:
        connection.execute("UPDATE epochs SET epoch = 0")
    connection.close()


@cache
def made_keys() -> Path:
    """The state of a front that has its keys and nothing else, made once."""
    folder = Path(mkdtemp())
    atexit.register(shutil.rmtree, folder)
    make_keys(folder)
    return folder


@asynccontextmanager
async def front_core(
    folder: Path, *manifests: dict[str, Any], front_id: str = "front-1-a", workers: int = 1,
    deadlines: Deadlines = PATIENT, **changes: Any,
) -> AsyncIterator[Core]:  # fmt: skip
    """A front in `folder` with these actions (echo by default) and so many compute workers. Several may share it.
    `changes` are settings."""
    if not (folder / "keys").exists():
        shutil.copytree(made_keys(), folder, dirs_exist_ok=True)
    key = Key()
    settings = settings_of(folder, key.jkt, **changes)
    clock, client = TestClock(), BreakableClient()
    shared = shared_notary(settings, clock)
    notary = shared.__enter__()
    ties = TiesOf(notary)
    client.guard(notary)
    desk = Desk(ties, front_id, ties.numbers)
    ours, theirs = socket.socketpair()
    control = SupervisorLink(ours, deadlines.control)
    control.kill_worker = desk.kill  # type: ignore[method-assign]  # no supervisor reads this front's channel
    start = StartFront(front_id, (front_id,), settings, ())
    services = build_services(start, control, client, clock, deadlines=deadlines)
    services.configuration.current.registry = registry_of(
        folder / "actions", *(manifests or (action(),)), has_proxy=settings.egress_proxy_url is not None
    )  # fmt: skip
    core = Core(services, client, clock, desk, notary)
    core.operator_key = key
    desk.pools = services.pools
    client.attach(notary.attach(front_id))
    try:
        async with trio.open_nursery() as nursery:
            await nursery.start(services.notary.run)
            await services.notary.wait_greeted(60)
            await nursery.start(services.pools.run)
            await services.dependencies.start(nursery)
            nursery.start_soon(services.witnesses.run)
            nursery.start_soon(desk.watch)
            for _ in range(workers):
                desk.start()
            await until(lambda: desk.idle() == workers)
            yield core
            nursery.cancel_scope.cancel()
    finally:
        client.close()
        desk.close()
        control.close()
        theirs.close()
        services.close()
        shared.__exit__(None, None, None)
