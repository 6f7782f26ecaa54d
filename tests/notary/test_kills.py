"""A notary that is killed at any instant under load: what it answered is there, nothing is there twice."""

import os
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from ipc.operations.intents import ListUnresolved
from ipc.operations.leases import ReadBudget, ReadEpoch
from ipc.settings import Settings
from tests.notary.running import NotaryProcess, settings_in
from tests.notary.samples import call_event, make_issue, make_open, make_result
from tests.support.played_workers import Workers

CALLS = 10_000


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return settings_in(tmp_path / "state")


@pytest.fixture
def processes() -> Iterator[list[NotaryProcess]]:
    """Every notary of the test; what still runs at the end is killed."""
    started: list[NotaryProcess] = []
    yield started
    for one in started:
        if one.process.poll() is None:
            one.kill()


@pytest.fixture
def workers() -> Iterator[Workers]:
    """Those of the gateway, which outlive its notaries."""
    workers = Workers(make_result)
    yield workers
    workers.close()


def started(settings: Settings, processes: list[NotaryProcess], workers: Workers) -> NotaryProcess:
    processes.append(NotaryProcess(settings, workers))
    processes[-1].ready()
    return processes[-1]


def test_requests_that_a_killed_notary_did_not_answer_are_done_once(
    settings: Settings, processes: list[NotaryProcess], workers: Workers
) -> None:
    chance = random.Random(os.urandom(8))
    process = started(settings, processes, workers)
    front = process.attach("issues")
    session_id = front.ask(make_issue(max_calls=CALLS)).session_id
    front.close()
    for life in range(6):
        front = process.attach(f"front-{life}")
        asked = {number: make_open(event=call_event(session_id=session_id), has_budget=True) for number in range(1, 65)}
        front.resend(asked)
        heard = {number: front.answer(number) for number in range(1, 1 + chance.randrange(20))}
        process.kill()
        heard |= {number: front.answer(number) for number in front.left()}
        front.close()
        process = started(settings, processes, workers)
        again = process.attach(f"front-{life}")
        unheard = {number: one for number, one in asked.items() if number not in heard}
        again.resend({**unheard, 1000: ReadEpoch()})  # and counts on
        again.answer(1000)
        closed = [*heard.values(), *(again.answer(number) for number in unheard)]
        wanted = CALLS - 64 * (life + 1)
        assert len({one.receipt_id for one in closed}) == 64
        assert again.ask(ReadBudget(session_id)).remaining == wanted
        assert again.ask(ListUnresolved(100)) == []
        assert max(Counter(workers.runs()).values()) == 1, "run twice"
        again.close()
