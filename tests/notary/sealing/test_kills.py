"""Sealing that is killed at any step loses nothing and has nothing twice, and is repeated by the same command."""

import shutil
import sqlite3
import subprocess
import time
from contextlib import closing
from pathlib import Path

import pytest

from ipc.process.clock import iso
from supervisor.programs import INTERPRETER
from tests.notary.running import ROOT, Running
from tests.notary.sealing.sealed_ledger import AGE, events_in, keys_of, settings_text, verify, write_calls
from tests.support.strace import program

STEPS = "fsync,fdatasync,rename,unlink,pwrite64"
EVERY = 7
"""Each so many-eth call is tried; the others do not differ."""


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, float]:
    """A state folder with calls of three ages, its settings, and the time before which a part of it is sealed."""
    start = time.time() - 10 * AGE
    notary = Running(tmp_path_factory.mktemp("old") / "state")
    for age in range(3):
        write_calls(notary, start + age * AGE)
    notary.stop()
    keys_of(notary, notary.folder / "keys.json")
    text = settings_text(notary)
    notary.close()
    return notary.folder, text, start + 2 * AGE


def sealed(settings: str, before: float, out: Path, *killed: str) -> "subprocess.CompletedProcess[str]":
    """The program, as the supervisor runs it, or below strace with these arguments."""
    command = [*killed, *INTERPRETER, "notary.seal", "--before", iso(before), "--out", str(out)]
    return subprocess.run(command, input=settings, capture_output=True, text=True, timeout=300, check=False, cwd=ROOT)


def event_ids(*files: Path) -> list[str]:
    found = []
    for file in files:
        with closing(sqlite3.connect(file)) as connection:
            found += [event["event_id"] for event in events_in(connection) if event["event_type"] != "LedgerSealed"]
    return found


@pytest.mark.large
def test_a_kill_at_any_step_loses_nothing_and_leaves_nothing_twice(
    old: tuple[Path, str, float], tmp_path: Path
) -> None:  # fmt: skip
    folder, settings, before = old
    expected, at, was_killed = event_ids(folder / "ledger.sqlite3"), 1, True
    while was_killed:
        state, out = tmp_path / f"state-{at}", tmp_path / f"out-{at}"
        shutil.copytree(folder, state)
        mine = settings.replace(str(folder), str(state))
        killed = [program(), "-f", "-qq", "-o", "/dev/null", "-e", f"inject={STEPS}:signal=KILL:when={at}"]
        was_killed = sealed(mine, before, out, *killed).returncode != 0
        ledger, keys = state / "ledger.sqlite3", state / "keys.json"
        ran = verify(ledger, "--keys", keys)
        assert ran.returncode == 0, f"killed at {at}: {ran.stdout}"
        again = sealed(mine, before, out)
        assert again.returncode == 0 or "no checkpoint lies before" in again.stderr, again.stderr
        ran = verify(ledger, "--segments", out, "--keys", keys)
        assert ran.returncode == 0, f"killed at {at}: {ran.stdout}"
        assert event_ids(*sorted(out.glob("segment-*")), ledger) == expected, f"killed at {at}"
        assert len(list(out.iterdir())) == 1, f"killed at {at}"
        shutil.rmtree(state)
        at += EVERY
    assert at > EVERY + 1, "it was never killed"
