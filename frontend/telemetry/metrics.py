"""The counters of one front: one for each family that is counted as events happen, in the callers' words.

Services call a method when something happened to them; none of them raises, waits or costs more than a microsecond.
Counts begin at 0 with the gateway: a front that replaces another keeps its counts, and every front answers with the
sums of all. Gauges (holds, sizes, processes) are not kept here but read on request
(frontend/telemetry/readings.py).
"""

import signal
import time
from collections.abc import Callable, Iterable
from itertools import product
from typing import Protocol

from prometheus_client.metrics_core import Metric

from frontend.shared.memory import SharedMemory
from frontend.telemetry import families as f
from frontend.telemetry.cells import Cells
from frontend.telemetry.counters import Counts, Levels, Timings
from ipc.backends.store import STORE_PARTS
from ipc.effects import PROFILES
from ipc.operations.calls import Open, Refuse, UseProof, Withdraw
from ipc.operations.deliveries import RedeliverDeliveries
from ipc.operations.evidence import WriteEvent
from ipc.operations.holds import DueHolds, GetHold, Hold, ListHolds, MoveHold, OrphanedHolds, UnsettledHolds
from ipc.operations.intents import ResolveIntent
from ipc.operations.keys import FollowKeys
from ipc.operations.leases import Issue, ReadBudget, ReadEpoch, Revoke, RevokeSession
from ipc.operations.status import ReadStore
from ipc.process.exits import Exit

DPOP_CODES = ("missing_auth_header", "invalid_dpop", "replay_detected")
OPERATOR_CODES = (*DPOP_CODES, "invalid_operator_token")
REASONS = ("store", "policy", "ledger", "egress_proxy", "crash_loop", "ledger_full", "clock", "draining")
"""Why /readyz says that the gateway is not ready."""
RATES = ("lease", "unidentified", "write", "read", "session")
REFUSALS = ("draining", "ceiling", "share", "rate", "ledger_full")
HELD, ENDS = "held", ("approved", "denied", "expired", "failed")
SPANS = EXPORTED, DROPPED = ("exported", "dropped")
WRITES = INTENT, RECEIPT, EVENT = ("intent", "receipt", "event")
ASKS = DECIDE, LOAD = ("decide", "load")
"""The questions to an engine that are counted."""
POLICY_CODES = ("policy_engine_unavailable", "policy_engine_timeout")
"""Why a question had no answer."""
POLICY_REFUSED = "refused"
LEASES = "/v1/leases"
MAX_RULES = 100
"""The most rules of a policy with a series of their own: its author may choose a new name for each decision."""

_WRITES = {
    Open.__name__: INTENT,
    "Close": RECEIPT,
    **{
        one.__name__: EVENT
        for one in (WriteEvent, Refuse, Withdraw, Issue, Revoke, FollowKeys, RevokeSession, ResolveIntent,
                    RedeliverDeliveries)
    },
}  # fmt: skip
"""Operations of the notary that write evidence -> what they are counted as; Close is the second half of an Open."""
_READS = {
    ReadBudget.__name__: "read_budget", ReadEpoch.__name__: "read_epoch", ReadStore.__name__: "read_store",
    GetHold.__name__: "get_hold", ListHolds.__name__: "list_holds", DueHolds.__name__: "due_holds",
    OrphanedHolds.__name__: "orphaned_holds", UnsettledHolds.__name__: "unsettled_holds", Hold.__name__: "hold",
    MoveHold.__name__: "move_hold",
}  # fmt: skip
"""Operations of the notary that are one request to the key-value store -> what they are counted as."""
_PARTS = {"store": "proof", "budget": "debit", "approvals": "hold"}
"""Part of the key-value store that failed an operation which writes evidence -> the request that failed."""
_OWN = {
    UseProof.__name__: "proof", Issue.__name__: "issue", Revoke.__name__: "revoke", RevokeSession.__name__: "revoke"
}  # fmt: skip
"""Operations whose requests to the key-value store have a name of their own."""
STORE_REQUESTS = ("proof", "debit", "issue", "revoke", *_READS.values())
_ENDS_OF_PROCESSES = {one.name for one in (*Exit, *signal.Signals)}


Kill = Callable[[str, str], None]


class Registered(Protocol):
    """Knows whether an action exists: a registry, replaced as a whole by a reload."""

    def get(self, action_id: str) -> object | None:
        """The action, or None."""


class Metrics:
    """The counters of one front. `registry` tells the active one; `memory` has what other fronts have counted."""

    def __init__(self, registry: Callable[[], Registered], memory: SharedMemory | None = None) -> None:
        self._registry = registry
        self._seen: Registered | None = None
        self._memory = memory or SharedMemory.alone()
        self._cells = Cells.of(self._memory)
        self._others = {number: Cells.of(self._memory, number) for number in self._memory.others}
        self.calls = Counts(f.CALLS, (), self._cells)
        self.call_seconds = Timings(f.CALL_SECONDS, (), self._cells)
        self.calls_refused = Counts(f.CALLS_REFUSED, _each(REFUSALS), self._cells)
        self.execution_seconds = Timings(f.EXECUTION_SECONDS, (), self._cells)
        self.executions = Counts(f.EXECUTIONS, (), self._cells)
        self.schema_violations = Counts(f.SCHEMA_VIOLATIONS, (), self._cells)
        self.budget_exhausted = Counts(f.BUDGET_EXHAUSTED, (), self._cells)
        self.quota_exhausted = Counts(f.QUOTA_EXHAUSTED, (), self._cells)
        self.dpop_rejections = Counts(f.DPOP_REJECTIONS, _each(DPOP_CODES), self._cells)
        self.operator_auth_failures = Counts(f.OPERATOR_AUTH_FAILURES, _each(OPERATOR_CODES), self._cells)
        self.rate_limited = Counts(f.RATE_LIMITED, _each(RATES), self._cells)
        self.leases_issued = Counts(f.LEASES_ISSUED, (), self._cells)
        self.leases_refused = Counts(f.LEASES_REFUSED, (), self._cells)
        self.decisions = Counts(f.DECISIONS, (), self._cells)
        self.policy_seconds = Timings(f.POLICY_SECONDS, _each(ASKS), self._cells)
        self.policy_errors = Counts(
            f.POLICY_ERRORS, [*product(ASKS, POLICY_CODES), (LOAD, POLICY_REFUSED)], self._cells
        )
        self.policy_remembered = Counts(f.POLICY_REMEMBERED, (), self._cells)
        self.approvals = Counts(f.APPROVALS, _each((HELD, *ENDS)), self._cells)
        self.store_seconds = Timings(f.STORE_SECONDS, _each(STORE_REQUESTS), self._cells)
        self.store_errors = Counts(f.STORE_ERRORS, _each(STORE_REQUESTS), self._cells)
        self.ledger_seconds = Timings(f.LEDGER_SECONDS, _each(WRITES), self._cells)
        self.audit_errors = Counts(f.AUDIT_ERRORS, _each(WRITES), self._cells)
        self.verifications = Counts(f.VERIFICATIONS, _each(("intact", "broken")), self._cells)
        self.worker_wait = Timings(f.WORKER_WAIT, _each(PROFILES), self._cells)
        self.workers_killed = Counts(f.WORKERS_KILLED, (), self._cells)
        self.workers_ended = Counts(f.WORKERS_ENDED, (), self._cells)
        self.readiness_degraded = Counts(f.READINESS_DEGRADED, _each(REASONS), self._cells)
        self.answers = Counts(f.ANSWERS, (), self._cells)
        self.connections = Levels(f.CONNECTIONS, (), self._cells)
        self.accepted = Counts(f.ACCEPTED, (), self._cells)
        self.turned_away = Counts(f.TURNED_AWAY, (), self._cells)
        self.answers_cut = Counts(f.CUT, (), self._cells)
        self.log_lines_dropped = Counts(f.LOG_LINES_DROPPED, [()], self._cells)
        self._told_dropped = 0
        self.witness_requests = Counts(f.WITNESS_REQUESTS, (), self._cells)
        self.otlp_spans = Counts(f.OTLP_SPANS, _each(SPANS), self._cells)
        self._rules: set[str] = set()
        self._by_action = (self.calls, self.execution_seconds, self.executions, self.schema_violations)

    @property
    def counters(self) -> dict[str, Counts | Timings]:
        """Every family that is counted here, by name."""
        return {
            counter.family.name: counter for counter in vars(self).values() if isinstance(counter, Counts | Timings)
        }

    def shown(self, family: f.Family) -> Metric:
        """One family that is counted here, as all fronts together have counted it. A front that does not serve has
        nothing open any more; what it has counted stays counted."""
        counter = self.counters[family.name]
        is_level = isinstance(counter, Levels)
        others = [
            cells for number, cells in self._others.items() if not is_level or self._memory.is_serving(number)
        ]  # fmt: skip
        return counter.shown(others, self._is_kept if counter in self._by_action else None)

    def learn(self) -> None:
        """Look for series that other fronts have begun, and drop those of actions that a reload has removed."""
        for cells in self._others.values():
            cells.refresh()
        self.forget_removed()

    def _is_kept(self, label: str) -> bool:
        return label == f.OTHER or self._registry().get(label) is not None

    def asked(self, operation: str, seconds: float, problem: str | None, part: str | None = None) -> None:
        """The notary has answered, or has not: `problem` says why there is no answer, `part` what of it failed."""
        write, request = _WRITES.get(operation), _READS.get(operation)
        if request is not None:
            self.store_seconds.observe(seconds, request)
            if problem is not None:
                self.store_errors.add(request)
        elif problem is not None and (part in STORE_PARTS or operation == UseProof.__name__):
            self.store_errors.add(_OWN.get(operation) or _PARTS[part or "store"])
        elif write is not None:
            self.ledger_seconds.observe(seconds, write)
            if problem is not None:
                self.audit_errors.add(write)

    def asked_store(self, request: str, seconds: float) -> None:
        """An operation that writes evidence has made this request to the key-value store."""
        self.store_seconds.observe(seconds, request)

    # ------------------------------------------------------------------ calls

    def called(self, action_id: str, outcome: str, code: str | None, started: float) -> None:
        """A call was decided. `outcome` as in its event; `started` in monotonic seconds."""
        self.calls.add(self._action(action_id), outcome, code or "ok")
        self.call_seconds.observe(time.monotonic() - started)
        if code == "budget_exhausted":
            self.budget_exhausted.add()

    def executed(self, action_id: str, outcome: str, seconds: float) -> None:
        """A provider ran. `outcome` is a worker's, or worker_lost, or cut."""
        label = self._action(action_id)
        self.executions.add(label, outcome)
        self.execution_seconds.observe(seconds, label)
        if outcome == "response_schema":
            self.schema_violations.add(label)

    def expect_answers(self, action_ids: Iterable[str]) -> None:
        """Begin the series of actions whose answers may break a schema: a first count that is seen to rise from 0."""
        for action_id in action_ids:
            self.schema_violations.add(self._action(action_id), times=0)

    def schema_violated(self, action_id: str) -> None:
        """An answer went out that breaks its action's response schema."""
        self.schema_violations.add(self._action(action_id))

    def refused(self, route: str, code: str) -> None:
        """A request of this row of the table of routes was answered with an error."""
        if code in DPOP_CODES:
            self.dpop_rejections.add(code)
        if route == LEASES:
            self.leases_refused.add(code)

    def decided(self, decision: str, rule: str) -> None:
        """The policy engine has decided: allow, deny or pending_approval."""
        if rule not in self._rules:
            if len(self._rules) >= MAX_RULES:
                rule = f.OTHER
            self._rules.add(rule)
        self.decisions.add(decision, rule)

    def forget_removed(self) -> None:
        """Drop the series of actions that a reload has removed."""
        registry = self._registry()
        if registry is not self._seen:
            self._seen = registry
            for counter in self._by_action:
                counter.keep(self._is_kept)

    def _action(self, action_id: str) -> str:
        """An action's label. SECURITY: agents choose the ids that they ask for; only those that exist are labels."""
        self.forget_removed()
        return action_id if self._seen is not None and self._seen.get(action_id) is not None else f.OTHER

    # ------------------------------------------------------------------ HTTP

    def answered(self, route: str, method: str, status: int) -> None:
        """A request had its answer. `route` and `method` as the table of routes has them, or `other`."""
        self.answers.add(route, method, str(status))

    def opened(self, listener: str) -> None:
        """A connection was accepted."""
        self.connections.add(listener)
        self.accepted.add(listener)

    def closed(self, listener: str) -> None:
        """It has ended."""
        self.connections.less(listener)

    def turned(self, listener: str) -> None:
        """A connection was turned away."""
        self.turned_away.add(listener)

    def cut(self, listener: str) -> None:
        """A connection was closed with an answer that its client did not take."""
        self.answers_cut.add(listener)

    def answered_itself(self, status: int) -> None:
        """The HTTP skin answered what no row of the table did."""
        self.answered(f.OTHER, f.OTHER, status)

    def dropped_lines(self, count: int) -> None:
        """This process has dropped `count` lines of its log so far."""
        self.log_lines_dropped.add(times=count - self._told_dropped)
        self._told_dropped = count

    # ------------------------------------------------------------------ workers

    def counting_kills(self, kill: Kill) -> Kill:
        """`kill`, counted. Its reasons are the pool's own few texts."""

        def counted(worker_id: str, reason: str) -> None:
            self.workers_killed.add(_profile(worker_id), reason)
            kill(worker_id, reason)

        return counted

    def worker_ended(self, worker_id: str, reason: str) -> None:
        """A worker's process has ended. SECURITY: a worker chooses its exit code; those without a name are `other`."""
        self.workers_ended.add(_profile(worker_id), reason if reason in _ENDS_OF_PROCESSES else f.OTHER)

    # ------------------------------------------------------------------ witnesses

    def knows_witnesses(self, names: Iterable[str], outcomes: Iterable[str]) -> None:
        """Said once, before anything is counted: which witnesses there are."""
        self.witness_requests = Counts(f.WITNESS_REQUESTS, product(names, outcomes), self._cells)


def _each(labels: tuple[str, ...]) -> list[tuple[str, ...]]:
    return [(label,) for label in labels]


def _profile(worker_id: str) -> str:
    profile = worker_id.partition("-")[0]
    return profile if profile in PROFILES else f.OTHER
