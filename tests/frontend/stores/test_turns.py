"""Turns, taken by real processes."""

import os
import signal
import stat
import subprocess
from bisect import bisect
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


def tell(children: "list[subprocess.Popen[str]]", word: str) -> None:
    for child in children:
        assert child.stdin is not None
        child.stdin.write(f"{word}\n")
        child.stdin.flush()


def overtaken(asked: float, began: float, others: list[float]) -> int:
    """How many turns of a neighbour began while one waited."""
    return bisect(others, began) - bisect(others, asked)


def test_neighbours_that_never_pause_take_turns_fairly(tmp_path: Path, start: Start) -> None:
    children = [start("take_turns", tmp_path / "db", "200") for _ in range(2)]
    for word in ("ready", "enough"):
        for child in children:
            assert line_of(child) == word
        tell(children, word)
    told = [[float(moment) for moment in line_of(child).split()] for child in children]
    asked, began = ([moments[at::2] for moments in told] for at in (0, 1))
    both_there = max(one[0] for one in began), min(one[-1] for one in began)
    counts = [
        overtaken(*wait, began[1 - number])
        for number in (0, 1) for wait in zip(asked[number], began[number], strict=True)
        if both_there[0] <= wait[0] and wait[1] <= both_there[1]
    ]  # fmt: skip
    assert len(counts) > 200
    # One turn of the neighbour's, which was next before, and a second where the machine held up who was about to ask.
    # Who takes the next turn whenever it can leaves its neighbour far behind in nearly all of its few waits.
    assert sorted(counts)[len(counts) // 2] <= 2, counts
