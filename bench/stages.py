"""The stages of a run that need several subjects at once: the rounds, and ledgers of two lengths."""

import statistics
import sys
import tempfile
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from bench import ourselves
from bench.backends import Chosen, running
from bench.direct import ComponentCall, fdatasync_ms
from bench.generator import Generator
from bench.rounds import Sample, play
from bench.servers import NoServerError
from bench.slow_disk import NoCompilerError, built
from bench.subjects import Disk, Gate, RefusedError, Subject, floor, fresh_gate, gate
from bench.targets import ECHO, PLAIN, SLOW, gateway_on, gateway_with

H11 = "echo h11 + trio"
EVENTS = (1000, 1_000_000)


@dataclass(frozen=True)
class Scope:
    """How much is measured."""

    levels: tuple[int, ...]
    """Connections."""
    rounds: int
    seconds: float
    """Duration of a sample: each subject at each level in each round."""
    kills: int


WHOLE = Scope((1, 2, 4, 8, 16, 32), 5, 2.0, 5)
QUICK = Scope((1, 4, 32), 2, 0.8, 3)


def progress(text: str) -> None:
    """A line for a person who waits."""
    if sys.stderr.isatty():
        print(f"  … {text}", file=sys.stderr, flush=True)


@dataclass(frozen=True)
class Beside:
    """The subjects beside the plain gateway."""

    fronts: Iterable[int] = ()
    slow_disk_us: int = 0
    backends: Iterable[Chosen] = ()


def rounds(scope: Scope, load: Generator, plain: Gate, beside: Beside) -> dict[str, Any]:
    """All subjects, interleaved: `samples`, `floors`, and by name the subjects that were `refused` and why."""
    with ExitStack() as stack:
        subjects: dict[str, Subject] = {ECHO: stack.enter_context(floor("hypercorn"))}
        subjects[H11] = stack.enter_context(floor("h11"))
        subjects[PLAIN] = plain
        refused = _start_others(stack, subjects, beside)
        component, floors = ComponentCall(), dict[str, list[float]]()
        seen = set[int]()

        def measure(name: str, level: int, number: int) -> Sample:
            if number not in seen:
                seen.add(number)
                floors.setdefault("fdatasync_ms", []).append(fdatasync_ms())
                floors.setdefault("component_call_ms", []).append(component.ms())
            progress(f"round {number + 1} of {scope.rounds}: {name}, {level} connections")
            return load.calls(subjects[name], level, scope.seconds)

        taking_part = {name: (1, 32) if name == H11 else scope.levels for name in subjects}
        samples = play(taking_part, scope.levels, scope.rounds, measure)
    medians = {name: statistics.median(values) for name, values in floors.items()}
    return {"samples": samples, "floors": medians, "refused": refused}


def _start_others(stack: ExitStack, subjects: dict[str, Subject], beside: Beside) -> dict[str, dict[str, str]]:
    """Add gateways that differ from the plain one; return the unavailable ones with the reasons."""
    refused: dict[str, dict[str, str]] = {}

    def add(name: str, start: Callable[[], Gate]) -> None:
        try:
            subjects[name] = start()
        except RefusedError as error:
            refused[name] = {"told": "refused", "reason": str(error)}
        except (NoCompilerError, NoServerError) as error:
            refused[name] = {"told": "unavailable", "reason": str(error)}

    def slow() -> Gate:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="gateway-bench-")))
        return stack.enter_context(fresh_gate(disk=Disk(built(folder), beside.slow_disk_us)))

    def with_fronts(count: int) -> Gate:
        return stack.enter_context(fresh_gate(fronts=count))

    def lying_on(backends: Chosen) -> Gate:
        return stack.enter_context(fresh_gate(backends=stack.enter_context(running(backends))))

    for count in sorted(set(beside.fronts) - {1}):
        add(gateway_with(count), partial(with_fronts, count))
    if beside.slow_disk_us:
        add(SLOW, slow)
    for backends in beside.backends:
        add(gateway_on(backends), partial(lying_on, backends))
    return refused


def growth(scope: Scope, load: Generator) -> dict[str, Any]:
    """Executes on ledgers of EVENTS, interleaved, and the verification of the longest one."""
    # Growing reaches into the ledger's own code, which the rest of the benchmark does without.
    from bench.growth import prepared_ledger

    with ExitStack() as stack:
        subjects: dict[str, Gate] = {}
        for events in EVENTS:
            progress(f"a ledger of {events} events")
            subjects[str(events)] = stack.enter_context(gate(stack.enter_context(prepared_ledger(events))))

        def measure(name: str, level: int, number: int) -> Sample:
            progress(f"round {number + 1} of {scope.rounds}: {name} events, {level} connections")
            return load.calls(subjects[name], level, scope.seconds)

        samples = play(dict.fromkeys(subjects, (1, 32)), (1, 32), scope.rounds, measure)
        progress("verification")
        longest = subjects[str(EVENTS[-1])]
        verified = ourselves.verification(longest)
        beside = ourselves.beside_verification(longest, load, scope.seconds, scope.rounds)
    return {"samples": samples, "verify": verified, "beside_verification": beside}
