"""The supervisor's present view of its processes: a row for each process, and a summary.

Told by `gateway ps` and `gateway status`, and in the log on SIGUSR1. Reads what children have said; asks none of them.
"""

from collections.abc import Iterable
from typing import TypedDict

from ipc.messages.control import FrontStatus
from ipc.process.clock import iso
from ipc.process.roles import CALLS_DO_WITHOUT
from ipc.process.stderr import stderr
from supervisor import lifecycle
from supervisor.children.standings import ChildStanding
from supervisor.keepers.fronts import FrontLife
from supervisor.keepers.worker_supply import Worker
from supervisor.state import SupervisorState


class ProcessRow(TypedDict):
    """One process; `pid` 0 if it is missing."""

    name: str
    pid: int
    state: str
    in_flight: int | None
    """Calls, of a front; of others null: they are counted by their front."""
    queues: dict[str, int]
    """Queue -> its length in this process; empty queues are left out."""
    ends: int
    """How often it ended by a fault."""
    last_error: str
    last_error_seconds_ago: float | None


class Whole(TypedDict):
    """The gateway in a few words."""

    state: str
    is_ready: bool
    """It serves, by one front at least; no child is in a crash loop, and the ledger has room."""
    pid: int
    version: str
    state_dir: str
    fronts: int
    in_flight: int
    actions: int | None
    held: int | None
    unresolved: int | None
    crash_loops: list[str]
    is_ledger_full: bool
    """Calls are refused until there is room on its volume."""
    log_lines_dropped: int
    """Lines of supervisor and fronts that standard error did not take, since these processes began."""
    clock_error: dict[str, str | None] | None
    """Why the clock is wrong, and until when (ISO 8601); None while it is right."""
    down: list[str]
    """Dependencies without which no call is let through, and that do not answer, by their names in the status."""
    weakened: list[str]


def rows(state: SupervisorState, fronts: Iterable[FrontLife], workers: Iterable[Worker]) -> list[ProcessRow]:
    """A row for each process of the gateway but the supervisor itself."""
    standings = state.standings
    by_name = {front.name: front for front in fronts}
    listed = []
    for one in standings.all.values():
        row = _row(one, standings.ago(one))
        front = by_name.get(one.name)
        if front is not None:
            row["in_flight"], row["queues"] = front.in_flight, _queues(front)
        if not one.name.startswith("worker ") or one.is_failing:
            listed.append(row)
    return [*listed, *(_worker(one, standings.all.get(f"worker {one.profile}")) for one in workers)]


def whole(state: SupervisorState, fronts: Iterable[FrontLife], pid: int) -> Whole:
    """`pid` is the supervisor's."""
    living = list(fronts)
    said = [front.status for front in living if front.status is not None]
    crash_loops = list(state.standings.crash_loops)
    is_ledger_full = any(one.is_ledger_full for one in said)
    clock_error, down = _clock_error(said), _down(said)
    serving = sum(front.answers for front in living)
    shown = lifecycle.shown(state.lifecycle.state, serving)
    refuses_all = is_ledger_full or clock_error is not None or bool(down)
    return {
        "state": shown,
        "is_ready": shown == lifecycle.SERVING and CALLS_DO_WITHOUT.issuperset(crash_loops) and not refuses_all,
        "pid": pid,
        "version": state.settings.version,
        "state_dir": state.settings.state_dir,
        "fronts": serving,
        "in_flight": sum(front.in_flight for front in living),
        "actions": said[0].actions if said else None,
        "held": _told(one.held for one in said),
        "unresolved": _told(one.unresolved for one in said),
        "crash_loops": crash_loops,
        "is_ledger_full": is_ledger_full,
        "log_lines_dropped": stderr.dropped + sum(one.log_lines_dropped for one in said),
        "clock_error": clock_error,
        "down": down,
        "weakened": list(state.settings.weakened),
    }


def _clock_error(said: Iterable[FrontStatus]) -> dict[str, str | None] | None:
    wrong = next((one.clock_error for one in said if one.clock_error is not None), None)
    return None if wrong is None else {"cause": wrong.cause, "until": _time(wrong.until)}


def _time(until: float | None) -> str | None:
    """SECURITY: a front that was taken over names any number, also one that is no time."""
    try:
        return None if until is None else iso(until)
    except (OverflowError, ValueError, OSError):
        return None


def _down(said: Iterable[FrontStatus]) -> list[str]:
    names = {name for one in said for name, is_up in one.dependencies.items() if not is_up and name != "egress_proxy"}
    return sorted(names | ({"ledger"} if any(one.unresolved < 0 for one in said) else set()))


def _told(values: Iterable[int]) -> int | None:
    """All fronts say the same of stores that they share; minus one is said by those that can't tell."""
    known = [value for value in values if value >= 0]
    return max(known) if known else None


def _row(one: ChildStanding, ago: float) -> ProcessRow:
    return {
        "name": one.name, "pid": one.pid, "state": one.state, "in_flight": None, "queues": {}, "ends": one.ends,
        "last_error": one.last_error, "last_error_seconds_ago": round(ago, 1) if one.last_error else None,
    }  # fmt: skip


def _worker(worker: Worker, standing: ChildStanding | None) -> ProcessRow:
    state = "ending" if worker.is_asked_to_end else "serving" if worker.has_served else "starting"
    ends = standing.ends if standing else 0
    return {
        "name": f"worker {worker.profile} {worker.worker_id.rpartition('-')[2]}", "pid": worker.pid, "state": state,
        "in_flight": None, "queues": {}, "ends": ends, "last_error": standing.last_error if standing else "",
        "last_error_seconds_ago": None,
    }  # fmt: skip


def _queues(front: FrontLife) -> dict[str, int]:
    """Calls that wait for a worker, workers with a call, operations at the notary, messages to the front itself."""
    counts = {"control": front.queued}
    if front.status is not None:
        counts |= {f"waiting {profile}": count for profile, count in front.status.waiting.items()}
        counts |= {f"busy {profile}": count for profile, count in front.status.busy.items()}
        counts["notary"] = front.status.unanswered
    return {name: count for name, count in counts.items() if count}
