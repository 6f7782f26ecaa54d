"""Background work whose database fails in each round: one line of the log."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import pytest

from notary.database import DatabaseGone
from notary.opening import open_state
from notary.upkeep.counting import Counting
from notary.upkeep.sealed_rows import SealedRows
from tests.notary.running import HandClock, settings_in
from tests.support.logs import capture_logs


def counts(work: Counting) -> None:
    work._has_more = True


def gone(*_given: object, **_named: object) -> NoReturn:
    raise DatabaseGone("it is gone")


@pytest.mark.parametrize(
    ("made", "has_work", "line"),
    [
        (Counting, counts, "calls could not be counted for the summary"),
        (SealedRows, SealedRows.begin, "sealed rows could not be deleted"),
    ],
)
def test_a_failure_that_lasts_is_logged_once_and_again_after_a_round_without_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made: Any, has_work: Callable[[Any], None], line: str
) -> None:
    now = 0.0
    state = open_state(settings_in(tmp_path), HandClock())[0]
    work = made(state, lambda: now)
    with capture_logs() as lines:
        for is_gone in (True, True, True, False, True):
            has_work(work)
            now += 1000.0
            with monkeypatch.context() as patched:
                if is_gone:
                    patched.setattr(type(state.database), "unit", gone)
                work.tend()
    state.database.close()
    assert [one["event"] for one in lines] == [line] * 2
