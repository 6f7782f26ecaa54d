"""Rounds of events: each a gateway of its own, its seed, its load, its events, and what must hold afterwards."""

import random
import shutil
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import psutil

from tests.chaos.events import EVENTS, drawn
from tests.chaos.invariants import effects_of, problems
from tests.chaos.load import Load, Seen, wait_for_success
from tests.chaos.transfers import Heard, Transfers
from tests.chaos.world import Failed, World
from tests.support.upstream import upstream
from tests.support.webhook_receiver import webhook_receiver

PAUSE_SECONDS = (0.0, 0.15)
WAITS_FOR_SERVICE = 0.25
"""How many of the events are followed by a wait until a call succeeds again."""
SPARE_DESCRIPTORS = 24
"""The number of descriptors that a process may hold more at the end: connections of clients, workers beyond the least
number."""
SPARE_BYTES = 48 << 20


@dataclass(frozen=True)
class Plan:
    """The parameters of one round, complete, so that it can be repeated."""

    seed: int
    events: int
    fronts: int
    flush_us: int


@dataclass
class Outcome:
    """The result of a round."""

    plan: Plan
    events: Counter[str] = field(default_factory=Counter)
    codes: Counter[str] = field(default_factory=Counter)
    lost: int = 0
    starts: int = 0
    longest: float = 0.0
    """Seconds until a call succeeded after an event."""
    seconds: float = 0.0
    problems: list[str] = field(default_factory=list)


Progress = Callable[[str], None]


def play(plan: Plan, libraries: str, progress: Progress, *, is_root: bool) -> Outcome:
    """One round. Its folder is removed unless something does not hold."""
    outcome, began = Outcome(plan), time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix="gateway-chaos-"))
    with upstream() as up, webhook_receiver() as receiver:
        world = World(
            folder, up.address, receiver.address, libraries, fronts=plan.fronts, flush_us=plan.flush_us, is_root=is_root
        )  # fmt: skip
        seen, heard = Seen(), Heard()
        try:
            world.start()
            _run(world, seen, heard, plan, outcome, progress)
            outcome.problems += problems(world, seen, up, receiver)
            outcome.problems += heard.problems(effects_of(up))
        except Failed as failed:
            outcome.problems += [*seen.faults, str(failed)]
        finally:
            if outcome.problems:
                _keep(world, folder)
            outcome.starts = world.starts
            world.end()
    outcome.codes = Counter(f"{answer.kind} {answer.code}" for answer in seen.answers)
    outcome.codes += Counter(f"{answer.kind} {answer.code}" for answer in seen.approved)
    outcome.codes += Counter(f"transfer {end}" for end in heard.ends.values())
    outcome.lost = sum(seen.lost.values())
    outcome.seconds = time.monotonic() - began
    if not outcome.problems:
        shutil.rmtree(folder, ignore_errors=True)
    return outcome


def _keep(world: World, folder: Path) -> None:
    """The folder on a disk that is removed with this process."""
    kept = folder / "kept"
    kept.mkdir()
    for name in ("ledger.sqlite3", "ledger.sqlite3-wal", "checkpoints"):
        if (world.state / name).exists():
            shutil.copy(world.state / name, kept / name)


def _run(world: World, seen: Seen, heard: Heard, plan: Plan, outcome: Outcome, progress: Progress) -> None:
    choices = random.Random(f"{plan.seed}/events")
    load = Load(world, seen, plan.seed)
    with load, Transfers(world, heard, load.held):
        wait_for_success(world, seen)
        before = weight(world)
        for number in range(plan.events):
            name = drawn(choices, has_small_disk=world.disk.is_small)
            dice = random.Random(f"{plan.seed}/{number}")
            progress(f"event {number + 1} of {plan.events}: {name}")
            outcome.events[name] += 1
            EVENTS[name][1](world, dice)
            if name.endswith(("restart", "now", "supervisor")) and "freeze" not in name:
                before = weight(world) if "descriptors" not in name else before
            if dice.random() < WAITS_FOR_SERVICE:
                outcome.longest = max(outcome.longest, wait_for_success(world, seen))
            time.sleep(dice.uniform(*PAUSE_SECONDS))
        outcome.longest = max(outcome.longest, wait_for_success(world, seen))
    world.wait(lambda: _is_calm(world), "a gateway that is ready again")
    _look_at_weight(world, before)
    _settle(world)
    world.signal(signal.SIGTERM)
    world.wait_end((0,))


def _is_calm(world: World) -> bool:
    status = world.command("status")
    return status is not None and not status["in_flight"] and status["state"] == "serving"


def _settle(world: World) -> None:
    """Have the ledger's journal written to its tables, and keys told."""
    with world.http() as http:
        operator = world.operator(http)

        def answered(path: str) -> httpx.Response | None:
            try:
                answer = operator.get(path)
            except httpx.TransportError:  # by a front that ended
                return None
            return answer if answer.status_code == 200 else None

        world.wait(lambda: answered("/v1/audit/events?limit=1"), "events")
        world.receipt_keys = world.wait(lambda: answered("/v1/receipt-keys"), "receipt keys").json()


@dataclass
class Weight:
    """The resources of a process."""

    descriptors: int
    bytes: int


def weight(world: World) -> dict[str, Weight]:
    """The resources of the long-lived processes."""
    weights = {}
    for kind in ("supervisor", "front", "notary", "template"):
        for victim in world.victims(kind)[:1]:
            try:
                weights[kind] = Weight(victim.num_fds(), victim.memory_info().rss)
            except psutil.Error:
                continue
    return weights


def _look_at_weight(world: World, before: dict[str, Weight]) -> None:
    """No descriptor leaked, and memory is flat. Raises Failed."""

    def heavy() -> list[str]:
        now = weight(world)
        told = []
        for kind in sorted(now.keys() & before.keys()):
            if now[kind].descriptors > before[kind].descriptors + SPARE_DESCRIPTORS:
                told.append(f"{kind} holds {now[kind].descriptors} descriptors, not {before[kind].descriptors}")
            if now[kind].bytes > before[kind].bytes + SPARE_BYTES:
                told.append(f"{kind} holds {now[kind].bytes >> 20} MB, not {before[kind].bytes >> 20}")
        return told

    try:
        world.wait(lambda: not heavy(), "processes that hold no more than before", 20.0)
    except Failed:
        raise Failed("; ".join(heavy()) or "processes that held more than before for long") from None
