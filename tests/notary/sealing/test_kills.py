"""Sealing that is killed at any step loses nothing and has nothing twice, and is repeated by the same command."""

import re
import shutil
import signal
import sqlite3
import time
from collections import Counter
from contextlib import closing
from itertools import groupby
from pathlib import Path

import pytest

from ipc.process.clock import iso
from tests.notary.running import Running
from tests.notary.sealing.sealed_ledger import AGE, events_in, keys_of, settings_text, verify, write_calls
from tests.support.forked import CONTEXT, Forked, seal_when_told
from tests.support.strace import injected, traced

WRITE = "pwrite64"
STEPS = ("fsync", "fdatasync", "rename", "unlink", WRITE)
NAME = re.compile(r"(?:\d+ +)?(\w+)\(")


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


class Seal:
    """The program, before it begins."""

    def __init__(self, settings: str, before: float, out: Path) -> None:
        self._said = out.with_name(f"{out.name}.said")
        self._said.touch()
        self._word, theirs = CONTEXT.Pipe()
        arguments = ["--before", iso(before), "--out", str(out)]
        self._process = Forked(seal_when_told, arguments, settings, self._said, theirs)
        self.pid = self._process.pid

    def run(self) -> tuple[int, str]:
        """Its exit code and its words."""
        self._word.send_bytes(b"begin")
        return self._process.wait(300), self._said.read_text()


def event_ids(*files: Path) -> list[str]:
    found = []
    for file in files:
        with closing(sqlite3.connect(file)) as connection:
            found += [event["event_id"] for event in events_in(connection) if event["event_type"] != "LedgerSealed"]
    return found


@pytest.fixture(scope="module")
def steps(old: tuple[Path, str, float], tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, int]]:
    """Each step of a seal but writes, and the middle of each row of writes: those between two other steps do not
    differ. A system call, and which of its name."""
    folder, settings, before = old
    scratch = tmp_path_factory.mktemp("steps")
    shutil.copytree(folder, scratch / "state")
    seal = Seal(settings.replace(str(folder), str(scratch / "state")), before, scratch / "out")
    with traced(seal.pid, ",".join(STEPS), scratch) as trace:
        code, said = seal.run()
    assert code == 0, said
    names = [call[1] for line in trace.news() if (call := NAME.match(line))]
    seen, found = Counter[str](), list[tuple[str, int]]()
    for name, row in groupby(names):
        length = len(list(row))
        numbers = [length // 2 + 1] if name == WRITE else range(1, length + 1)
        found += [(name, seen[name] + number) for number in numbers]
        seen[name] += length
    return found


@pytest.mark.large
def test_a_kill_at_any_step_loses_nothing_and_leaves_nothing_twice(
    old: tuple[Path, str, float], steps: list[tuple[str, int]], tmp_path: Path
) -> None:
    folder, settings, before = old
    expected = event_ids(folder / "ledger.sqlite3")
    for at, step in enumerate(steps):
        state, out = tmp_path / f"state-{at}", tmp_path / f"out-{at}"
        shutil.copytree(folder, state)
        mine = settings.replace(str(folder), str(state))
        seal = Seal(mine, before, out)
        with injected(seal.pid, step[0], f"signal=KILL:when={step[1]}", state, ()):
            assert seal.run()[0] == -signal.SIGKILL, f"not killed at {step}"
        ledger, keys = state / "ledger.sqlite3", state / "keys.json"
        ran = verify(ledger, "--keys", keys)
        assert ran.returncode == 0, f"killed at {step}: {ran.stdout}"
        code, said = Seal(mine, before, out).run()
        assert code == 0 or "no checkpoint lies before" in said, said
        ran = verify(ledger, "--segments", out, "--keys", keys)
        assert ran.returncode == 0, f"killed at {step}: {ran.stdout}"
        assert event_ids(*sorted(out.glob("segment-*")), ledger) == expected, f"killed at {step}"
        assert len(list(out.iterdir())) == 1, f"killed at {step}"
        shutil.rmtree(state)
