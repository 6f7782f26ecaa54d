"""`make chaos N=10000`: kills, freezes and starves a gateway under load, and holds its evidence against the truth.

A run is rounds of events, each with its seed: `make chaos SEED=S N=100 ARGS="--fronts F"` plays one of them again.
Interrupted, it ends after the round that it is at, with the summary of those that it has played.
"""

import argparse
import os
import signal
import sys
import tempfile
import threading
from collections import Counter
from pathlib import Path

from bench.slow_disk import NoCompilerError
from ipc.process.parent import adopt_orphans
from tests.chaos.events import most_descriptors
from tests.chaos.rounds import Outcome, Plan, play
from tests.chaos.spoilt import libraries, own_mounts

FLUSHES_US = (0, 2000)


def main() -> int:
    """Play, tell, and say by the exit code whether everything held."""
    chosen = _options()
    adopt_orphans()
    most_descriptors()
    enough = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: enough.set())
    is_root = own_mounts()
    if not is_root:
        _say("no small disk: that needs root; the event `full disk` is left out")
    outcomes: list[Outcome] = []
    with tempfile.TemporaryDirectory(prefix="gateway-chaos-") as folder:
        try:
            shims = libraries(Path(folder))
        except NoCompilerError as error:
            _say(f"chaos needs to step clocks and slow disks: {error}")
            return 2
        for plan in _plans(chosen):
            _say(
                f"round {len(outcomes) + 1}: seed {plan.seed}, {plan.fronts} fronts, a flush {plan.flush_us} us longer"
            )
            outcomes.append(play(plan, shims, _shown, is_root=is_root))
            for problem in outcomes[-1].problems:
                _say(f"PROBLEM in seed {plan.seed}: {problem}")
            if enough.is_set() or (outcomes[-1].problems and not chosen.go_on):
                break
    print(summary(outcomes))
    return 1 if any(outcome.problems for outcome in outcomes) else 0


def _plans(chosen: argparse.Namespace) -> list[Plan]:
    """Rounds of at most so many events: with one front and with two, on a fast disk and on a slow one."""
    plans, left, number = [], chosen.events, 0
    while left > 0:
        seed = chosen.seed + number
        size = min(left, chosen.round)
        fronts = chosen.fronts[seed % len(chosen.fronts)]
        plans.append(Plan(seed, size, fronts, FLUSHES_US[seed // 2 % 2]))
        left, number = left - size, number + 1
    return plans


def summary(outcomes: list[Outcome]) -> str:
    """A table of what happened, and the seeds to have it again."""
    events, codes = sum((one.events for one in outcomes), Counter()), sum((one.codes for one in outcomes), Counter())
    failed = [one for one in outcomes if one.problems]
    seconds = sum(one.seconds for one in outcomes)
    lines = [f"{sum(events.values())} events in {len(outcomes)} rounds, {seconds:.0f} s", ""]
    lines += [f"  {name:<24} {count:>6}" for name, count in sorted(events.items())]
    lines += ["", "answers"]
    lines += [f"  {name:<44} {count:>7}" for name, count in sorted(codes.items())]
    lines += [f"  {'calls without an answer':<44} {sum(one.lost for one in outcomes):>7}"]
    lines += ["", f"starts of a gateway: {sum(one.starts for one in outcomes)}"]
    lines += [f"longest wait for a call that succeeds: {max((one.longest for one in outcomes), default=0):.1f} s"]
    for one in failed:
        lines += [f"FAILED: seed {one.plan.seed} ({one.plan})", *(f"  {problem}" for problem in one.problems[:20])]
    seeds = f"seeds {outcomes[0].plan.seed} to {outcomes[-1].plan.seed}" if outcomes else "no round"
    lines += [f"{seeds}: " + (f"{len(failed)} rounds FAILED" if failed else "every invariant held in every round")]
    return "\n".join(lines)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="chaos", description=__doc__)
    parser.add_argument("--events", type=int, default=200, metavar="N", help="how many in all (200)")
    parser.add_argument("--round", type=int, default=100, metavar="N", help="how many at most for one gateway (100)")
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4), "big"), help="of the first round")
    parser.add_argument(
        "--fronts", type=lambda text: [int(one) for one in text.split(",")], default=[1, 2], metavar="N,…",
        help="numbers of fronts, by turns (1,2)",
    )  # fmt: skip
    parser.add_argument("--go-on", action="store_true", help="play the rounds after one that failed, too")
    return parser.parse_args()


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _shown(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r  {text:<70}", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
