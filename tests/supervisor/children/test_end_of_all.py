"""The end of whatever a supervisor leaves behind, while threads of it end."""

import subprocess

from supervisor.programs import INTERPRETER

THREADS_END = ("tests.supervisor.programs.ending_threads",)


def test_threads_that_end_meanwhile_spare_no_child_and_end_in_no_error() -> None:
    ended = subprocess.run([*INTERPRETER, *THREADS_END], capture_output=True, text=True, timeout=120, check=False)
    assert (ended.stdout, ended.returncode) == ("no child is left\n", 0), ended.stderr
