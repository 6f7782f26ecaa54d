"""Sealing that is killed at any step loses nothing and has nothing twice, and is repeated by the same command."""

import shutil
import sqlite3
import subprocess
import time
from collections import Counter
from contextlib import closing
from itertools import groupby
from pathlib import Path

import pytest

from ipc.process.clock import iso
from supervisor.programs import INTERPRETER
from tests.notary.running import ROOT, Running
from tests.notary.sealing.sealed_ledger import AGE, events_in, keys_of, settings_text, verify, write_calls
from tests.support.strace import program

WRITE = "pwrite64"
STEPS = ("fsync", "fdatasync", "rename", "unlink", WRITE)


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
    """The program, as the supervisor runs it, or below strace with these arguments. It keeps no compiled modules: the
    steps of that would be those of one run alone."""
    command = [
        *killed,
        INTERPRETER[0],
        "-B",
        *INTERPRETER[1:],
        "notary.programs.seal",
        "--before",
        iso(before),
        "--out",
        str(out),
    ]
    return subprocess.run(command, input=settings, capture_output=True, text=True, timeout=300, check=False, cwd=ROOT)


def event_ids(*files: Path) -> list[str]:
    found = []
    for file in files:
        with closing(sqlite3.connect(file)) as connection:
            found += [event["event_id"] for event in events_in(connection) if event["event_type"] != "LedgerSealed"]
    return found


@pytest.fixture(scope="module")
def steps(old: tuple[Path, str, float], tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Each step of a seal but writes, and the middle of each row of writes: those between two other steps do not
    differ. As strace names them: a system call, and which of its name."""
    folder, settings, before = old
    scratch = tmp_path_factory.mktemp("steps")
    shutil.copytree(folder, scratch / "state")
    traced = [program(), "-f", "-qq", "-o", str(scratch / "trace"), "-e", f"trace={','.join(STEPS)}"]
    ran = sealed(settings.replace(str(folder), str(scratch / "state")), before, scratch / "out", *traced)
    assert ran.returncode == 0, ran.stderr
    names = [line.split()[1].partition("(")[0] for line in (scratch / "trace").read_text().splitlines()]
    seen, found = Counter[str](), []
    for name, row in groupby(names):
        length = len(list(row))
        numbers = [length // 2 + 1] if name == WRITE else range(1, length + 1)
        found += [f"{name}:signal=KILL:when={seen[name] + number}" for number in numbers]
        seen[name] += length
    return found


@pytest.mark.large
def test_a_kill_at_any_step_loses_nothing_and_leaves_nothing_twice(
    old: tuple[Path, str, float], steps: list[str], tmp_path: Path
) -> None:
    folder, settings, before = old
    expected = event_ids(folder / "ledger.sqlite3")
    for at, step in enumerate(steps):
        state, out = tmp_path / f"state-{at}", tmp_path / f"out-{at}"
        shutil.copytree(folder, state)
        mine = settings.replace(str(folder), str(state))
        killed = [program(), "-f", "-qq", "-o", "/dev/null", "-e", f"inject={step}"]
        assert sealed(mine, before, out, *killed).returncode != 0, f"not killed at {step}"
        ledger, keys = state / "ledger.sqlite3", state / "keys.json"
        ran = verify(ledger, "--keys", keys)
        assert ran.returncode == 0, f"killed at {step}: {ran.stdout}"
        again = sealed(mine, before, out)
        assert again.returncode == 0 or "no checkpoint lies before" in again.stderr, again.stderr
        ran = verify(ledger, "--segments", out, "--keys", keys)
        assert ran.returncode == 0, f"killed at {step}: {ran.stdout}"
        assert event_ids(*sorted(out.glob("segment-*")), ledger) == expected, f"killed at {step}"
        assert len(list(out.iterdir())) == 1, f"killed at {step}"
        shutil.rmtree(state)
