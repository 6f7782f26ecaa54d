"""Turns, taken by real processes."""

import os
import signal
import stat
from itertools import groupby
from pathlib import Path

from frontend.stores.turns import Turn
from tests.frontend.stores.conftest import Start, line_of


def test_one_process_can_take_turn_after_turn(tmp_path: Path) -> None:
    turn = Turn(tmp_path / "db")
    for _ in range(3):
        with turn:
            pass
    turn.close()
    with turn:
        pass
    turn.close()


def test_its_files_are_private_and_not_inherited(tmp_path: Path) -> None:
    before = set(os.listdir("/proc/self/fd"))
    turn = Turn(tmp_path / "db")
    with turn:
        opened = [int(fd) for fd in set(os.listdir("/proc/self/fd")) - before if os.path.exists(f"/proc/self/fd/{fd}")]
        assert not any(os.get_inheritable(fd) for fd in opened)
    turn.close()
    assert {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()} == {0o600}
    assert set(os.listdir("/proc/self/fd")) == before


def test_a_killed_holder_leaves_the_turn_to_the_next(tmp_path: Path, start: Start) -> None:
    holder = start("hold_turn", tmp_path / "db")
    assert line_of(holder) == "held"
    other = start("hold_turn", tmp_path / "db")
    holder.send_signal(signal.SIGKILL)
    assert line_of(other) == "held"


def test_neighbours_that_never_pause_take_turns_fairly(tmp_path: Path, start: Start) -> None:
    children = [start("take_turns", tmp_path / "db", "1.0") for _ in range(2)]
    for child in children:
        assert line_of(child) == "ready"
    for child in children:
        assert child.stdin is not None
        child.stdin.write("go\n")
        child.stdin.flush()
    turns = [[float(moment) for moment in line_of(child).split()] for child in children]
    both_there = max(moments[0] for moments in turns), min(moments[-1] for moments in turns)
    order = sorted((moment, number) for number, moments in enumerate(turns) for moment in moments)
    owners = [number for moment, number in order if both_there[0] <= moment <= both_there[1]]
    assert len(owners) > 100
    runs = [len(list(run)) for _, run in groupby(owners)]
    # One after the other, but for moments in which the machine lets a neighbour oversleep its place in the queue.
    assert len(runs) > len(owners) * 0.8, runs
