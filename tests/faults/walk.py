"""Walks the rows of one dependency on a gateway that runs: everything is asked while the fault lasts, and looked at
again afterwards.

tests/faults/test_matrix.py judges the observations; this file checks only the conditions that hold after every fault.
"""

import re
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field

import httpx

from tests.faults.between import GARBAGE, HANGS, REFUSES, RESETS
from tests.faults.table.rows import HEALTHY, OPERATIONS, START, Row, Table
from tests.support.gateway import Bearer, Gateway, Prover, wait_for

BUDGET = 2
FURTHER_CALLS = 10
_LABEL = re.compile(r'\w+="[^"]*"')
MUTE = (REFUSES, HANGS, RESETS, GARBAGE)
"""Faults of a dependency that gives no answer at all."""


@dataclass
class Stage:
    """One dependency of one running gateway."""

    table: Table
    gate: Gateway
    failing: Callable[[str], AbstractContextManager[None]]
    """Makes a fault of the table, and mends it."""
    call: Callable[[Bearer], httpx.Response]
    """A call that needs the dependency."""
    held: Callable[[Bearer, str], httpx.Response]
    """A call with this mark that is held, and needs it when it is approved."""
    effects: Callable[[str], int]
    """How often the call of this mark had its effect."""
    asked: Callable[[], int] | None = None
    """How often the dependency was asked what calls ask."""
    afterwards: Callable[[str, str], None] | None = None
    """A further check after a fault (its name, trace id of the last call under it). Raises AssertionError."""


@dataclass
class Seen:
    """The observations of one fault."""

    answers: dict[str, str] = field(default_factory=dict)
    traces: dict[str, str] = field(default_factory=dict)
    """Operation -> trace id of its answer."""
    log: str = ""
    """All lines since it began."""
    before: str = ""
    """The metrics before it, and the last ones under it."""
    metrics: str = ""
    further: int | None = None
    """How often the dependency was asked for further calls."""
    problems: list[str] = field(default_factory=list)
    """The conditions that fail afterwards."""


@dataclass
class _Scene:
    """The state before the fault."""

    free: Bearer
    limited: Bearer
    holder: Bearer
    approval_id: str
    receipt_id: str
    mark: str
    spent: int = 0


def walk(stage: Stage, faults: set[str]) -> dict[str, Seen]:
    """These rows of the table, in its order, and always that of its start; fault -> what was seen."""
    pids = _pids(stage.gate)
    chosen = faults | {START}
    rows = {fault: row for fault, row in stage.table.rows.items() if isinstance(row, Row) and fault in chosen}
    seen = {fault: _walk_row(stage, fault, row) for fault, row in rows.items()}
    if not seen:
        return seen
    last = seen[next(reversed(seen))]
    if _pids(stage.gate) != pids:
        last.problems.append("a process did not live through it all")
    report = stage.gate.operator().get("/v1/audit/verify").json()
    if not report["intact"]:
        last.problems.append(f"the ledger is not intact: {report}")
    return seen


def _walk_row(stage: Stage, fault: str, row: Row) -> Seen:
    seen, gate = Seen(), stage.gate
    scene = _scene(stage, f"{fault.replace(' ', '-')}-{len(gate.log.read_bytes())}")
    begun, seen.before = 0 if fault == START else len(gate.log.read_text()), gate.operator().get("/metrics").text
    with stage.failing(fault):
        for operation in sorted(OPERATIONS, key=lambda one: (one != row.first, one == "approve")):
            _ask(stage, scene, seen, operation, row.answer(operation))
        if stage.asked is not None and fault in MUTE and row.answer("readiness") != HEALTHY["readiness"]:
            asked = stage.asked()
            for _ in range(FURTHER_CALLS):
                stage.call(scene.free)
            seen.further = stage.asked() - asked
        _wait_metrics(gate, row, seen)
    try:
        _look_afterwards(stage, row, scene, seen)
        if stage.afterwards is not None:
            stage.afterwards(fault, seen.traces["execute"])
    except AssertionError as error:
        seen.problems.append(str(error))
    seen.log = gate.log.read_text()[begun:]
    return seen


def _scene(stage: Stage, mark: str) -> _Scene:
    gate = stage.gate
    free, limited, holder = gate.agent(), gate.agent(max_calls=BUDGET), gate.agent(max_calls=1)
    held = stage.held(holder, mark)
    assert held.status_code == 202, held.text
    receipt = gate.agent().execute("text_digest", {"text": mark})
    assert receipt.status_code == 200, receipt.text
    return _Scene(free, limited, holder, held.json()["approval_id"], receipt.json()["receipt_id"], mark)


def _ask(stage: Stage, scene: _Scene, seen: Seen, operation: str, expected: str) -> None:
    gate = stage.gate
    lease = {"scopes": ["tools:call"], "dpop_jwk": Prover().jwk}
    ask: dict[str, Callable[[], httpx.Response]] = {
        "lease": lambda: gate.http.post("/v1/leases", json=lease),
        "lease with a budget": lambda: gate.http.post("/v1/leases", json=lease | {"budgets": {"max_calls": 1}}),
        "execute": lambda: stage.call(scene.free),
        "execute with a budget": lambda: stage.call(scene.limited),
        "approve": lambda: gate.operator().post(f"/v1/approvals/{scene.approval_id}/approve"),
        "poll": lambda: scene.holder.get(f"/v1/approvals/{scene.approval_id}/poll"),
        "receipt": lambda: scene.free.get(f"/v1/receipts/{scene.receipt_id}"),
        "audit": lambda: gate.operator().get("/v1/audit/events?limit=1"),
        "readiness": lambda: gate.http.get("/readyz"),
        "status": lambda: gate.operator().get("/v1/admin/status"),
    }
    answer = ask[operation]()
    if operation in ("readiness", "status"):  # how things stand is looked at in rounds
        answer = _waited(ask[operation], expected)
    if operation == "execute with a budget" and (answer.status_code == 200 or "x-receipt-id" in answer.headers):
        scene.spent = 1
    if operation == "approve" and (answer.status_code == 200 or "x-receipt-id" in answer.headers):
        scene.approval_id = ""
    seen.answers[operation] = _said(operation, answer)
    seen.traces[operation] = answer.headers["x-trace-id"]


def _waited(ask: Callable[[], httpx.Response], expected: str) -> httpx.Response:
    responses: list[httpx.Response] = []

    def is_so() -> bool:
        responses.append(ask())
        return _said("readiness", responses[-1]) == expected

    with suppress(AssertionError):  # the last answer tells
        wait_for(is_so, expected)
    return responses[-1]


def _said(operation: str, answer: httpx.Response) -> str:
    word = answer.json().get("status" if operation in ("readiness", "status") else "error", "")
    return f"{answer.status_code} {word if isinstance(word, str) and operation != 'poll' else _error(answer)}".strip()


def _error(answer: httpx.Response) -> str:
    return str(answer.json().get("error", ""))


def _wait_metrics(gate: Gateway, row: Row, seen: Seen) -> None:
    def are_there() -> bool:
        seen.metrics = gate.operator().get("/metrics").text
        return all(holds(one, seen.before, seen.metrics) for one in row.metrics)

    with suppress(AssertionError):  # the test says which
        wait_for(are_there, "its metrics")


def holds(sample: str, before: str, after: str) -> bool:
    """True if `NAME{LABELS} VALUE` or `NAME{LABELS} rises` holds, given /metrics before the fault and under it."""
    name, _, wanted = sample.rpartition(" ")
    now = _sum(name, after)
    return now is not None and (now > (_sum(name, before) or 0.0) if wanted == "rises" else now == float(wanted))


def _sum(name: str, text: str) -> float | None:
    """Over all series of this name that have its labels; None if the name has no such series."""
    wanted, labels = _parts(name)
    values = [
        float(value) for series, _, value in (line.rpartition(" ") for line in text.splitlines())
        if (parts := _parts(series))[0] == wanted and labels <= parts[1]
    ]  # fmt: skip
    return sum(values) if values else None


def _parts(series: str) -> tuple[str, set[str]]:
    name, _, labels = series.partition("{")
    return name, set(_LABEL.findall(labels))


def _look_afterwards(stage: Stage, row: Row, scene: _Scene, seen: Seen) -> None:
    gate = stage.gate
    wait_for(lambda: gate.http.get("/readyz").json()["status"] == "ready", "readiness without a restart")
    fresh = gate.agent()
    wait_for(lambda: stage.call(fresh).status_code == 200, "calls")
    if row.ends_leases:
        return
    calls = [stage.call(scene.limited) for _ in range(BUDGET - scene.spent + 1)]
    codes = [answer.status_code for answer in calls]
    assert codes == [200] * (BUDGET - scene.spent) + [403], f"the budget is not exact: {codes} after {scene.spent}"
    assert scene.free.get(f"/v1/receipts/{scene.receipt_id}").status_code == 200, "the receipt is lost"
    _look_at_hold(stage, row, scene)
    allowed = gate.events(session_id=scene.limited.session_id, event_type="ActionCall", decision="allow")
    in_time = int(seen.answers["execute with a budget"] == "200")
    assert len(allowed) == BUDGET - scene.spent + in_time, f"{len(allowed)} calls were allowed"


def _look_at_hold(stage: Stage, row: Row, scene: _Scene) -> None:
    """Check that a call that was not approved under the fault still waits, and is approved once."""
    operator = stage.gate.operator()
    if scene.approval_id and not row.ends_hold:
        approve = f"/v1/approvals/{scene.approval_id}/approve"
        codes = [operator.post(approve).status_code for _ in range(2)]
        assert codes == [200, 404], f"the held call was answered {codes}"
    happened = stage.effects(scene.mark)
    was_approved = not row.ends_hold and (scene.approval_id or row.answer("approve") == "200")
    assert happened == int(bool(was_approved)), f"its effect happened {happened} times"


def _pids(gate: Gateway) -> dict[str, int]:
    return {one: gate.child(one).pid for one in ("front", "notary")}
