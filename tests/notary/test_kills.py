"""A notary that is killed under load, or between the word and the evidence: nothing is lost, each call is run once."""

import os
import random
import signal
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from ipc.limits import MAX_AHEAD
from ipc.operations.evidence import ShowReceipt
from ipc.operations.intents import ListUnresolved
from ipc.operations.leases import ReadBudget, ReadEpoch
from ipc.settings import Settings
from tests.notary.running import ForkedNotary, NotaryProcess, settings_in, stored, walk
from tests.notary.samples import call_event, make_issue, make_open, make_result
from tests.support.asking import Asker
from tests.support.played_workers import PlayedWorker, Workers
from tests.support.readable import readable
from tests.support.supervised import wait_until

CALLS = 10_000


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return settings_in(tmp_path / "state")


@pytest.fixture
def processes() -> Iterator[list[ForkedNotary]]:
    """Every notary of the test; what still runs at the end is killed."""
    started: list[ForkedNotary] = []
    yield started
    for one in started:
        if one.process.poll() is None:
            one.kill()


def started(settings: Settings, processes: list[ForkedNotary], workers: Workers) -> ForkedNotary:
    processes.append(ForkedNotary(settings, workers))
    processes[-1].ready()
    return processes[-1]


def test_requests_that_a_killed_notary_did_not_answer_are_done_once(
    settings: Settings, processes: list[ForkedNotary], workers: Workers
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


Lives = list[NotaryProcess]


@pytest.fixture
def lives(settings: Settings, workers: Workers) -> Iterator[Lives]:
    """The notary that is killed, and those that follow."""
    lives: Lives = []
    follow(lives, settings, workers).close()
    yield lives
    if lives[-1].process.poll() is None:
        lives[-1].kill()


def follow(lives: Lives, settings: Settings, workers: Workers) -> Asker:
    """The next notary; its channel to the front that lives on."""
    lives.append(NotaryProcess(settings, workers))
    lives[-1].ready()
    return lives[-1].attach("front-1")


def taken(_: NotaryProcess, worker: PlayedWorker, path: Path) -> None:
    """The worker has the word and has told nothing."""
    worker.word()


def untaken(_: NotaryProcess, worker: PlayedWorker, path: Path) -> None:
    """The word waits for the worker."""
    assert worker.has_news()


def told(notary: NotaryProcess, worker: PlayedWorker, path: Path) -> None:
    """The result waits for the notary."""
    os.kill(notary.process.pid, signal.SIGSTOP)
    os.waitid(os.P_PID, notary.process.pid, os.WSTOPPED | os.WNOWAIT)
    worker.run(worker.word(), make_result())


def read(notary: NotaryProcess, worker: PlayedWorker, path: Path) -> None:
    """The notary has taken the result and can't write: another connection has the lock."""
    with closing(sqlite3.connect(path, isolation_level=None, timeout=60)) as stranger:
        stranger.execute("BEGIN IMMEDIATE")
        worker.run(worker.word(), make_result())
        wait_until(lambda: not readable(worker.notarys, 0))
        os.kill(notary.process.pid, signal.SIGKILL)
        notary.process.wait(60)


@pytest.mark.parametrize("at", [untaken, taken, told, read])
def test_a_call_asked_for_again_ends_once_and_was_run_once(
    settings: Settings, workers: Workers, lives: Lives, at: object
) -> None:
    assert callable(at)
    path = Path(settings.state_dir) / "ledger.sqlite3"
    front, asked = lives[0].attach("front-1"), make_open()
    number = front.begin(asked)
    worker = workers.of(asked.intent_id)
    at(lives[0], worker, path)
    lives[0].kill()
    assert front.left() == set()
    front.close()
    if at is taken:
        worker.run(worker.words[0], make_result())
    front = follow(lives, settings, workers)
    front.resend({number: asked})
    while number not in front.left_now():
        if worker.has_news():
            word = worker.hear()
            if word in worker.words:
                worker.run(word, make_result())
    closed = front.answer(number)
    assert closed.kind == "success"
    while worker.has_news():
        word = worker.hear()
        if word in worker.words:
            worker.run(word, make_result())
    assert front.ask(ReadEpoch()) == 0
    assert worker.runs == [asked.intent_id]
    assert stored(path, "SELECT count(*) FROM receipts") == stored(path, "SELECT count(*) FROM events") == [1]
    assert front.ask(ListUnresolved(5)) == []
    assert front.ask(ShowReceipt(closed.receipt_id)).signature_status == "verified"
    assert walk(front).intact
    front.close()
    assert lives[-1].stop() == 0


@pytest.mark.parametrize("ends", [False, True], ids=["its worker lives", "its worker has ended"])
def test_calls_that_one_worker_runs_beside_each_other_end_once_each(
    settings: Settings, workers: Workers, lives: Lives, ends: bool
) -> None:
    """The notary is killed after a worker has begun MAX_AHEAD calls and sent the results of half of them."""
    front, worker = lives[0].attach("front-1"), workers.start("front-1")
    calls = {
        front.begin(asked, worker): msgspec.structs.replace(asked, worker_id=worker.worker_id, wants_begun=True)
        for asked in (make_open() for _ in range(MAX_AHEAD))
    }
    words = [worker.word() for _ in calls]
    os.kill(lives[0].process.pid, signal.SIGSTOP)
    os.waitid(os.P_PID, lives[0].process.pid, os.WSTOPPED | os.WNOWAIT)
    told = words[::2]
    for word in told:
        worker.run(word, make_result())
    lives[0].kill()
    front.close()
    if ends:
        workers.forget(worker)
    front = follow(lives, settings, workers)
    front.resend(dict(calls))
    for word in words[1::2] if not ends else ():
        worker.run(word, make_result())
    while not ends and not set(calls) <= front.left_now():
        if worker.has_news() and (word := worker.hear()) in worker.words:
            worker.run(word, make_result())
    outcomes = {asked.intent_id: front.answer(number).outcome for number, asked in calls.items()}
    lost = set(outcomes) if ends else set()
    assert {name for name, outcome in outcomes.items() if outcome == "worker_lost"} == lost
    assert sorted(worker.runs) == sorted(word.call_id for word in (told if ends else words))
    path = Path(settings.state_dir) / "ledger.sqlite3"
    assert stored(path, "SELECT count(*) FROM receipts") == stored(path, "SELECT count(*) FROM events") == [MAX_AHEAD]
    assert front.ask(ListUnresolved(MAX_AHEAD)) == []
    assert walk(front).intact
    front.close()
