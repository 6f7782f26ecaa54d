"""A hundred events with one front and a hundred with two: `make chaos` plays as many as one likes."""

import os
import subprocess
import sys

import pytest

from tests.support.manifests import REPOSITORY

EVENTS = int(os.environ.get("GATEWAY_CHAOS_EVENTS", "200"))
"""In all."""
FRONTS = (1, 2)
NO_COMPILER = 2


@pytest.mark.parametrize("fronts", FRONTS)
def test_nothing_is_lost_or_done_twice_whatever_happens_to_the_processes(fronts: int) -> None:
    command = [sys.executable, "-m", "tests.chaos", "--events", str(EVENTS // len(FRONTS)), "--fronts", str(fronts)]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    if done.returncode == NO_COMPILER and os.environ.get("CI") != "true":
        pytest.skip("needs a C compiler, to step clocks and slow disks")
    print(done.stdout)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr[-4000:]}"
