"""A start that collects nothing, and an end that loses nothing that was said."""

import subprocess
import sys

import pytest


def ran(statements: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-c", f"import gc, sys\nfrom ipc.process.process_speed import *\n{statements}"],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


def test_output_before_an_exit_arrives_and_the_exit_code_is_the_given_one() -> None:
    done = ran("sys.stdout.write('said'); sys.stderr.write('complained'); leave(78)")
    assert (done.returncode, done.stdout, done.stderr) == (78, "said", "complained")


@pytest.mark.parametrize("gone", ["sys.stdout.close()", "import os; sys.stdout.write('x'); os.close(1)"])
def test_leaving_does_not_fail_for_a_reader_that_is_gone(gone: str) -> None:
    done = ran(f"{gone}\nleave(0)")
    assert (done.returncode, done.stderr) == (0, "")


def test_objects_of_the_start_are_never_scanned_by_the_collector() -> None:
    done = ran(
        "hold_collector()\nkept = [[] for _ in range(5000)]\nprint(gc.isenabled(), gc.get_freeze_count())\n"
        "release_collector()\nprint(gc.isenabled(), gc.get_freeze_count() > 5000)"
    )
    assert done.stdout.split() == ["False", "0", "True", "True"]
