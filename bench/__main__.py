"""`make bench`: floors and ourselves in one run, told as ratios, also as JSON in bench/results/.

`--quick` leaves out the long ledgers; `--requests N` changes how many executes are timed.
"""

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from bench import direct, ourselves
from bench.growth import prepared_ledger
from bench.subjects import floor, gate

RESULTS = Path(__file__).parent / "results"


def progress(text: str) -> None:
    """A line for whoever waits."""
    if sys.stderr.isatty():
        print(f"  … {text}", file=sys.stderr, flush=True)


def floors(requests: int) -> dict[str, Any]:
    """Echoes on hypercorn and on h11, one component call, one fdatasync."""
    found: dict[str, Any] = {"fdatasync_ms": direct.fdatasync_ms(), "component_call_ms": direct.component_call_ms()}
    for kind in ("hypercorn", "h11"):
        with floor(kind) as subject:
            for connections in (1, 32):
                progress(f"echo on {kind}, {connections} connections")
                found[f"{kind}_c{connections}"] = subject.load(
                    "echo", ourselves.EXECUTE, ourselves.BODY, connections, requests
                )
    return found


def whole(requests: int) -> dict[str, Any]:
    """Everything about a gateway with a fresh ledger."""
    found: dict[str, Any] = {}
    with gate() as running:
        for connections in (1, 32):
            progress(f"executes, {connections} connections")
            found[f"execute_c{connections}"] = ourselves.executes(running, connections, requests)
        for name in ("health_idle", "health_busy", "leases", "approvals", "memory", "after_a_kill"):
            progress(name)
            found[name] = getattr(ourselves, name)(running)
    return found


def grown(events: int, requests: int) -> dict[str, Any]:
    """Executes and verification on a ledger of this many events."""
    progress(f"a ledger of {events} events")
    with prepared_ledger(events) as folder, gate(folder) as running:
        return {
            "execute_c1": ourselves.executes(running, 1, requests),
            "execute_c32": ourselves.executes(running, 32, requests),
            "verify": ourselves.verification(running),
        }


def told(results: dict[str, Any]) -> list[tuple[str, float, str]]:
    """(what, ratio or figure, target) of every line of the summary."""
    low, ours = results["floors"], results["ourselves"]
    echo_1, echo_32, one, many = low["hypercorn_c1"], low["hypercorn_c32"], ours["execute_c1"], ours["execute_c32"]
    lines = [
        ("CPU per execute / echo, at 32", many["cpu_us_all"] / echo_32["cpu_us_all"], "<= 2.2"),
        ("CPU per execute / echo, at 1", one["cpu_us_all"] / echo_1["cpu_us_all"], ""),
        ("throughput at 32 / echo", many["per_second"] / echo_32["per_second"], ">= 0.6"),
        ("p50 at 1 / echo", one["p50_ms"] / echo_1["p50_ms"], "<= 2.5"),
        ("p50 at 1 / fdatasync", one["p50_ms"] / low["fdatasync_ms"], "three are in it"),
        ("p99 at 32 / echo", many["p99_ms"] / echo_32["p99_ms"], ""),
        ("health p99, computing / idle", ours["health_busy"]["p99_ms"] / ours["health_idle"]["p99_ms"], "<= 2"),
        ("idle compute worker, MB PSS", ours["memory"].get("worker compute", 0.0), "<= 6"),
    ]
    ledgers = results.get("ledgers", {})
    if ledgers:
        small, large = ledgers["1000"], ledgers["1000000"]
        for name in ("execute_c1", "execute_c32"):
            ratio = large[name]["cpu_us_all"] / small[name]["cpu_us_all"]
            lines.append((f"CPU of {name}, 1,000,000 / 1,000 events", ratio, "<= 1.1"))
            ratio = large[name]["p50_ms"] / small[name]["p50_ms"]
            lines.append((f"p50 of {name}, 1,000,000 / 1,000 events", ratio, "<= 1.1"))
        lines.append(("verify, seconds per 100,000 events", large["verify"]["seconds_per_100k"], "<= 1"))
    return lines


def main() -> int:
    """Measure, print, keep."""
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--requests", type=int, default=3000)
    arguments = parser.parse_args()
    results: dict[str, Any] = {
        "cores": os.cpu_count(),
        "load_before": os.getloadavg(),
        "floors": floors(arguments.requests),
        "ourselves": whole(arguments.requests),
    }
    if not arguments.quick:
        results["ledgers"] = {str(events): grown(events, arguments.requests) for events in (1000, 1_000_000)}
    RESULTS.mkdir(exist_ok=True)
    kept = RESULTS / f"{time.strftime('%Y%m%dT%H%M%S')}.json"
    kept.write_text(json.dumps(results, indent=1))
    for what, figure, target in told(results):
        print(f"{what:48}{figure:9.2f}   {target}")
    print(f"\nCPU by process at 32, microseconds: {_rounded(results['ourselves']['execute_c32']['cpu_us'])}")
    print(f"PSS by process, MB: {_rounded(results['ourselves']['memory'])}")
    print(f"after SIGKILL of all computing workers: {_rounded(results['ourselves']['after_a_kill'])}")
    print(f"whole figures: {kept}")
    return 0


def _rounded(figures: dict[str, float]) -> dict[str, float]:
    return {name: round(value, 1) for name, value in figures.items()}


if __name__ == "__main__":
    sys.exit(main())
