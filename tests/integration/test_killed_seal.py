"""A seal that ends while it writes a segment leaves no unfinished file; the verifier names one that is left."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ipc.evidence.unfinished_segments import unfinished_in
from tests.integration.test_running_seal import OldState
from tests.notary.running import ROOT
from tests.notary.sealing.sealed_ledger import verify
from tests.support.gateway import wait_for
from tests.support.strace import program

NAME = ".segment-000000000000-000000000015.sqlite3.partial"
WAITING = f"""
import signal, subprocess, sys
from pathlib import Path
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # the tests may run under nohup, which the command respects
from supervisor.commands.inspect.sealing import _leaving_nothing
folder = Path(sys.argv[1])
with _leaving_nothing(folder):
    (folder / "{NAME}").touch()
    subprocess.run(["sleep", "600"])
"""
"""The part of the command that waits for the program which writes the segment."""


@pytest.fixture
def old(tmp_path: Path) -> OldState:
    return OldState(tmp_path)


def test_a_command_whose_program_is_killed_removes_the_unfinished_file(old: OldState) -> None:
    killed = "inject=rename:signal=KILL:when=2"  # the one that gives the whole file its name
    command = [program(), "-f", "-qq", "-o", "/dev/null", "-e", killed, *old.command]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert ran.returncode != 0, ran.stdout
    assert (list(old.out.iterdir()), old.sealed()) == ([], [])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_command_that_a_signal_ends_removes_the_unfinished_file(tmp_path: Path, number: int) -> None:
    waiting = subprocess.Popen([sys.executable, "-c", WAITING, str(tmp_path)], cwd=ROOT, stderr=subprocess.DEVNULL)
    wait_for(lambda: unfinished_in(tmp_path), "the file of a segment")
    os.kill(waiting.pid, number)
    assert waiting.wait(60) != 0
    assert list(tmp_path.iterdir()) == []


def test_the_verifier_names_an_unfinished_file_until_the_next_seal_removes_it(old: OldState) -> None:
    old.out.mkdir()
    (old.out / NAME).touch()
    ran = verify(old.ledger, "--segments", old.out, "--keys", old.keys)
    assert (ran.returncode, f"{old.out / NAME} is unfinished" in ran.stderr) == (0, True), ran.stderr
    assert old.seal().returncode == 0
    ran = verify(old.ledger, "--segments", old.out, "--keys", old.keys)
    assert (ran.returncode, ran.stderr, unfinished_in(old.out)) == (0, "", []), ran.stdout
