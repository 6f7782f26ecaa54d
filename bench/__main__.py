"""`make bench`: floors and ourselves, interleaved in rounds of one run, as ratios; also as JSON in bench/results/."""

import argparse
import json
import os
import re
import sys
import time
from pathlib import Path
from typing import Any

from bench import backends, effects, features, ourselves, stages, system_calls
from bench.floods import beside_floods
from bench.generator import generator
from bench.kills import BOUNDS_MS, after_kills
from bench.report import report, table
from bench.subjects import fresh_gate
from bench.targets import targets

RESULTS = Path(__file__).parent / "results"
UNITS = {"us": 1, "ms": 1000, "s": 1_000_000}
TRACED_CALLS = 300
KILLS = 15


def main() -> int:
    """Measure, print, keep."""
    chosen = options()
    if chosen.floods:
        return floods_alone()
    if chosen.kills:
        return kills_alone(chosen.kills)
    if chosen.effects:
        results = effects.measured(effects.QUICK if chosen.quick else effects.WHOLE)
        print(effects.told(results))
        if chosen.plot:
            chosen.plot.write_text(effects.plot(results))
    elif chosen.features:
        results = features.measured(stages.QUICK if chosen.quick else stages.WHOLE)
        print(features.told(results))
    else:
        results = measured(chosen)
        print(report(results))
    RESULTS.mkdir(exist_ok=True)
    kept = RESULTS / f"{time.strftime('%Y%m%dT%H%M%S')}.json"
    kept.write_text(json.dumps(results, indent=1))
    print(f"\nall samples: {kept}")
    return 0


def floods_alone() -> int:
    """Measure, print."""
    try:
        print(beside_floods())
    except PermissionError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def kills_alone(times: int) -> int:
    """Measure, print."""
    with fresh_gate() as plain:
        medians = after_kills(plain, times)
    rows = [("SIGKILL → served, ms", "median", "to reach"), *((kind, f"{ms:.0f}", f"<= {BOUNDS_MS[kind]}")
            for kind, ms in medians.items())]  # fmt: skip
    print("\n".join(table(rows)))
    return 0


def measured(chosen: argparse.Namespace) -> dict[str, Any]:
    """The whole run, as it stands in the JSON."""
    scope = stages.QUICK if chosen.quick else stages.WHOLE
    results: dict[str, Any] = {
        "cores": os.cpu_count(), "load_before": os.getloadavg(), "rounds": scope.rounds, "seconds": scope.seconds,
        "slow_disk_us": chosen.slow_disk,
    }  # fmt: skip
    with generator() as load, fresh_gate() as plain:
        results |= stages.rounds(scope, load, plain, stages.Beside(chosen.fronts, chosen.slow_disk, chosen.backends))
        # Memory is shared with the processes of other subjects, so it is read when they are gone.
        results["memory"] = ourselves.memory(plain)
        stages.progress("kills of all computing workers")
        results["after_a_kill"] = ourselves.after_a_kill(plain, scope.kills)
        stages.progress("kills of policy, template, notary and front")
        results["after_kills"] = after_kills(plain, scope.kills, [kind for kind in BOUNDS_MS if "worker" not in kind])
        if chosen.strace:
            stages.progress("system calls")
            reason = system_calls.unavailable()
            counted = {"unavailable": reason} if reason else system_calls.counted(plain, load, chosen.strace)
            results["system_calls"] = counted
        if not chosen.quick:
            stages.progress("health, leases, approvals")
            results["health"] = ourselves.health(plain, load, scope.seconds)
            results["leases"], results["approvals"] = ourselves.leases(plain), ourselves.approvals(plain)
        if chosen.growth:
            results["growth"] = stages.growth(scope, load)
    results["targets"] = [
        {"what": one.what, "figure": one.figure, "relation": one.relation, "bound": one.bound, "is_met": one.is_met}
        for one in targets(results)
    ]
    return results


def options(arguments: list[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="bench",
        description=__doc__,
        epilog="State lies where TMPDIR says. Where others flush the same disk, times vary with theirs (the first "
        "line tells fdatasync); with TMPDIR=/dev/shm a flush costs only what --slow-disk adds.",
    )
    parser.add_argument("--quick", action="store_true", help="2 short rounds at 1, 4 and 32 connections")
    parser.add_argument(
        "--fronts", type=_counts, default=(1, 2), metavar="N,…", help="also with so many front processes (1,2)"
    )
    parser.add_argument(
        "--slow-disk",
        type=duration_us,
        default=2000,
        metavar="TIME",
        help="also where a flush takes longer (2ms; 0: no)",
    )
    parser.add_argument(
        "--backends", type=backends.chosen, default=backends.DEFAULT, metavar="NAME+…,…",
        help=f"also on these servers, each gateway on its own (of {', '.join(backends.COLUMNS)}; {backends.DEFAULT}; "
        "none)",
    )  # fmt: skip
    parser.add_argument(
        "--strace", type=int, nargs="?", const=TRACED_CALLS, default=0, metavar="CALLS", help="count system calls"
    )
    parser.add_argument(
        "--kills", type=int, nargs="?", const=KILLS, default=0, metavar="TIMES",
        help="only how soon calls are served after a kill of each kind of process",
    )  # fmt: skip
    parser.add_argument(
        "--floods", action="store_true", help="only a polite agent beside floods of another user; needs root"
    )
    parser.add_argument("--effects", action="store_true", help="only calls that wait for an upstream")
    parser.add_argument("--features", action="store_true", help="only actions that use values of their requests")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="with --effects: calls/s by connections, as SVG")
    parser.add_argument("--growth", action="store_true", help="ledgers of a thousand and a million events; takes long")
    return parser.parse_args(arguments)


def duration_us(text: str) -> int:
    """Microseconds of `2ms`, `500us`, `1s` or `0`. Raises ArgumentTypeError."""
    match = re.fullmatch(r"(\d+)(us|ms|s)", text)
    if match is None and text != "0":
        raise argparse.ArgumentTypeError(f"{text!r} is no time such as 2ms, 500us or 0")
    return int(match[1]) * UNITS[match[2]] if match else 0


def _counts(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(","))


if __name__ == "__main__":
    sys.exit(main())
