"""Tells the story: `python -m contrib.demo`. Exit code 1 when any step did not behave."""

import sys
import tempfile
import time
from pathlib import Path

from contrib.demo.cast import Cast, assembled
from contrib.demo.story import STEPS


def tell(cast: Cast) -> list[tuple[str, str | None, float]]:
    """Run every step; (name, problem or None, milliseconds) of each."""
    told: list[tuple[str, str | None, float]] = []
    for number, (name, step) in enumerate(STEPS, 1):
        started = time.perf_counter()
        problem: str | None = None
        try:
            line = step(cast)
        except Exception as error:
            problem = f"{type(error).__name__}: {error}"
            line = f"DID NOT BEHAVE · {problem}"
        took = (time.perf_counter() - started) * 1000
        print(f"{number:2}/{len(STEPS)} {name:17} {line}   {took:.0f} ms", flush=True)
        told.append((name, problem, took))
    return told


def main() -> int:
    """Assemble everybody, tell the story, sum up."""
    started = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="gateway-demo-") as folder:
        with assembled(Path(folder)) as cast:
            print(f"gateway dev on {cast.ready['base_url']}, state in a temporary folder", flush=True)
            told = tell(cast)
        bad = [name for name, problem, _ in told if problem is not None]
        if bad:
            print("\n".join((Path(folder) / "gateway.log").read_text().splitlines()[-40:]), file=sys.stderr)
    print(f"\n{'step':20}{'behaved':>8}{'ms':>8}")
    for name, problem, took in told:
        print(f"{name:20}{'no' if problem else 'yes':>8}{took:>8.0f}")
    print(f"\n{len(told) - len(bad)} of {len(told)} steps behaved, {time.perf_counter() - started:.1f} s")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
