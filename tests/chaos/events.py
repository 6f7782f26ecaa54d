"""The faults that hit the gateway: a table of events, each a function of the world and of its round's random numbers.
An event undoes its own damage: it continues the processes that it stopped, frees the disk that it filled, and starts
the processes that it ended.
"""

import os
import random
import resource
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import httpx
import psutil

from frontend.deadlines import NotaryDeadlines
from ipc.process.exits import Exit
from tests.chaos.world import World

PROCESSES = ("front", "notary", "deliverer", "policy", "template", "worker compute", "worker http", "worker fs")
HOLD_SECONDS = (0.02, 0.3)
STEP_BACK = (6.0, 600.0)
ASKED_TO_STOP = (Exit.OK, Exit.KILLED, Exit.FAILED)
"""FAILED: a front had been killed just before, or ended while it drained."""

Event = Callable[[World, random.Random], None]


def _pause(dice: random.Random) -> None:
    threading.Event().wait(dice.uniform(*HOLD_SECONDS))


def _victim(world: World, kind: str, dice: random.Random) -> psutil.Process | None:
    draw, processes = dice.random(), world.victims(kind)
    return processes[int(draw * len(processes))] if processes else None


def _kill(kind: str) -> Event:
    def event(world: World, dice: random.Random) -> None:
        victim = _victim(world, kind, dice)
        if victim is not None:
            with suppress(psutil.NoSuchProcess):
                victim.kill()

    return event


def _kill_all_workers(world: World, _: random.Random) -> None:
    for victim in world.victims("worker"):
        with suppress(psutil.NoSuchProcess):
            victim.kill()


def _kill_front_and_notary(world: World, dice: random.Random) -> None:
    for kind in dice.sample(("front", "notary"), 2):
        _kill(kind)(world, dice)


def _kill_supervisor(world: World, _: random.Random) -> None:
    world.process.kill()
    world.again(expected=(-signal.SIGKILL,))


def _freeze(kind: str) -> Event:
    def event(world: World, dice: random.Random) -> None:
        victim = _victim(world, kind, dice)
        if victim is None:
            return
        with suppress(psutil.NoSuchProcess):
            victim.suspend()
            _pause(dice)
        with suppress(psutil.NoSuchProcess):
            victim.resume()

    return event


def _leave_fronts_unheard(world: World, dice: random.Random) -> None:
    """No notary answers for longer than fronts wait."""
    supervisor = _victim(world, "supervisor", dice)
    if supervisor is None:
        return
    supervisor.suspend()
    try:
        _kill("notary")(world, dice)
        threading.Event().wait(NotaryDeadlines().answer_seconds + 1)
    finally:
        supervisor.resume()


@contextmanager
def _without_descriptors(victim: psutil.Process) -> Iterator[None]:
    """The process can open no descriptor beyond those that it has."""
    before = victim.rlimit(psutil.RLIMIT_NOFILE)
    descriptors = os.listdir(f"/proc/{victim.pid}/fd")
    if not descriptors:  # it has ended, and is not reaped yet
        raise psutil.NoSuchProcess(victim.pid)
    held = max(map(int, descriptors)) + 1
    victim.rlimit(psutil.RLIMIT_NOFILE, (min(held, before[1]), before[1]))
    try:
        yield
    finally:
        with suppress(psutil.Error, OSError):
            victim.rlimit(psutil.RLIMIT_NOFILE, before)


def _exhaust(kind: str) -> Event:
    def event(world: World, dice: random.Random) -> None:
        victim = _victim(world, kind, dice)
        if victim is None:
            return
        with suppress(psutil.Error, OSError), _without_descriptors(victim):
            _pause(dice)

    return event


def _fill_disk(world: World, dice: random.Random) -> None:
    world.disk.fill()
    try:
        _pause(dice)
    finally:
        world.disk.free()


def _step_forward(world: World, dice: random.Random) -> None:
    world.clock.step(dice.uniform(0.5, 30.0))


def _step_back(world: World, dice: random.Random) -> None:
    seconds = dice.uniform(*STEP_BACK)
    world.clock.step(-seconds)
    _pause(dice)
    world.clock.step(seconds)


def _hang_up(world: World, _: random.Random) -> None:
    world.signal(signal.SIGHUP)


def _ask_for_reload(world: World, dice: random.Random) -> None:
    if dice.random() < 0.5:
        world.command("reload")
        return
    with world.http() as http, suppress(httpx.TransportError):
        world.operator(http).post("/v1/admin/reload")


def _look(world: World, dice: random.Random) -> None:
    world.signal(signal.SIGUSR1)
    world.command(dice.choice(("status", "ps")))


def _drain(world: World, _: random.Random) -> None:
    world.command("drain")
    world.signal(signal.SIGTERM)
    world.again(expected=ASKED_TO_STOP)


def _stop(world: World, _: random.Random) -> None:
    world.signal(signal.SIGTERM)
    world.again(expected=ASKED_TO_STOP)


def _stop_now(world: World, dice: random.Random) -> None:
    for number in dice.choices((signal.SIGTERM, signal.SIGINT), k=2):
        with suppress(ProcessLookupError):
            world.signal(number)
    world.again(expected=(*ASKED_TO_STOP, -signal.SIGTERM, -signal.SIGINT))


EVENTS: dict[str, tuple[float, Event]] = {
    **{f"kill {kind}": (4.0, _kill(kind)) for kind in PROCESSES},
    "kill all workers": (2.0, _kill_all_workers),
    "kill front and notary": (2.0, _kill_front_and_notary),
    "kill supervisor": (0.5, _kill_supervisor),
    "no notary": (0.5, _leave_fronts_unheard),
    **{f"freeze {kind}": (2.0, _freeze(kind)) for kind in (*PROCESSES, "supervisor")},
    **{f"descriptors {kind}": (1.5, _exhaust(kind)) for kind in ("front", "notary", "template", "supervisor")},
    "full disk": (4.0, _fill_disk),
    "clock forward": (2.0, _step_forward),
    "clock back": (3.0, _step_back),
    "hang up": (1.5, _hang_up),
    "reload": (1.5, _ask_for_reload),
    "look": (1.5, _look),
    "drain and restart": (0.4, _drain),
    "stop and restart": (0.4, _stop),
    "stop now": (0.4, _stop_now),
}
"""Name -> how often it comes, relative to the others, and what it does."""
NEED_A_SMALL_DISK = frozenset({"full disk"})


def drawn(dice: random.Random, *, has_small_disk: bool) -> str:
    """The next event."""
    names = [name for name in EVENTS if has_small_disk or name not in NEED_A_SMALL_DISK]
    return dice.choices(names, [EVENTS[name][0] for name in names])[0]


def most_descriptors() -> None:
    """Let this process and its gateways open what they need."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(max(soft, 4096), hard), hard))
