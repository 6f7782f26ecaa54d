"""The reader: the process that walks the whole chain for an operator, beside everything that calls wait for."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from tests.support.gateway import Bearer, Gateway, config_for, gateway, wait_for
from tests.support.manifests import patient
from tests.support.pace import Paces
from tests.support.processes import descriptors, is_running, mapped_files, status
from tests.support.supervised import told
from tests.support.upstream import Upstream

VERIFY = "/v1/audit/verify"
ATTEMPTS = 20
only_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may look into a process that is not dumpable")


@pytest.fixture(scope="module")
def gate(up: Upstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway of its own: here readers are killed, and its ledger is broken at the end."""
    folder: Path = tmp_path_factory.mktemp("reader")
    with gateway(folder, config_for(up.address, patient(folder / "actions"))) as running:
        agent = running.agent()
        for _ in range(20):
            assert agent.execute("text_digest", {"text": "x"}).status_code == 200
        yield running


class Asking(threading.Thread):
    """An operator that waits for a walk."""

    def __init__(self, operator: Bearer) -> None:
        super().__init__(name="operator")
        self._operator = operator
        self.answer: httpx.Response | None = None
        self.start()

    def run(self) -> None:
        with suppress(httpx.TransportError):  # a front may be killed meanwhile
            self.answer = self._operator.get(VERIFY)

    def answered(self) -> httpx.Response:
        """The answer, waited for."""
        self.join(120)
        assert self.answer is not None
        return self.answer


def reader_of(gate: Gateway) -> psutil.Process | None:
    """The reader that is there now, from its first instant on."""
    for process in psutil.Process(gate.process.pid).children():
        try:
            if "notary.reader" in process.cmdline() or process.cmdline()[:1] == ["gateway: reader"]:
                return process
        except (psutil.Error, IndexError):
            continue
    return None


@contextmanager
def stopped_reader(gate: Gateway, operator: Bearer) -> Iterator[tuple[psutil.Process, Asking]]:
    """A reader that is stopped before its answer, and the operator that waits for it."""
    for _ in range(ATTEMPTS):
        asking = Asking(operator)
        reader = _suspended(gate, asking)
        if reader is not None:
            break
        asking.join(120)  # it was faster than we are: once more
    else:
        raise AssertionError("no reader could be stopped")
    try:
        yield reader, asking
    finally:
        with suppress(psutil.NoSuchProcess):  # it may end by itself at any time
            reader.kill()
        asking.join(120)


def _suspended(gate: Gateway, asking: Asking) -> psutil.Process | None:
    reader = wait_for(lambda: reader_of(gate) or not asking.is_alive(), "a reader")
    if not isinstance(reader, psutil.Process):
        return None
    try:
        reader.suspend()
        wait_for(lambda: status(reader.pid, "State")[0] in "TZ", "its stop")
        # A process without its title yet has not answered either.
        if status(reader.pid, "State")[0] == "T" and reader.cmdline()[:1] != ["gateway: reader"]:
            return reader
        reader.resume()
        return None
    except (psutil.Error, OSError):
        return None


def lines(gate: Gateway, message: str) -> list[dict[str, Any]]:
    return told(gate.log.read_text(), message)


def test_a_walk_is_made_by_a_process_that_ends_by_itself(gate: Gateway, operator: Bearer) -> None:
    before = len(lines(gate, "the chain is intact"))
    answer = operator.get(VERIFY)
    assert answer.status_code == 200
    assert (answer.json()["intact"], answer.json()["events_checked"] >= 20) == (True, True)
    wait_for(lambda: reader_of(gate) is None, "the end of the reader")
    (line,) = lines(gate, "the chain is intact")[before:]
    assert (line["process"], line["events"]) == ("front 1", answer.json()["events_checked"])


def test_calls_are_served_while_a_reader_stands_still(gate: Gateway, agent: Bearer, operator: Bearer) -> None:
    with stopped_reader(gate, operator) as (reader, asking):
        for _ in range(5):
            assert agent.execute("text_digest", {"text": "x"}).status_code == 200
        assert asking.is_alive()
        reader.resume()
        assert asking.answered().json()["intact"] is True


def test_a_reader_that_is_killed_is_a_503_and_the_next_walk_has_another(gate: Gateway, operator: Bearer) -> None:
    with stopped_reader(gate, operator) as (reader, asking):
        reader.kill()
        answer = asking.answered()
    assert (answer.status_code, answer.json()["error"]) == (503, "ledger_unavailable")
    assert operator.get(VERIFY).json()["intact"] is True
    assert lines(gate, "reader ended without an answer")[-1]["reason"] == "SIGKILL"


def test_a_walk_beside_calls_that_write_finds_no_break(gate: Gateway, operator: Bearer) -> None:
    is_over = threading.Event()

    def work() -> None:
        agent, pace = gate.agent(), Paces.session()
        while not is_over.is_set():
            pace.wait()
            assert agent.execute("text_digest", {"text": "x"}).status_code == 200

    workers = [threading.Thread(target=work) for _ in range(2)]
    for worker in workers:
        worker.start()
    try:
        reports = [operator.get(VERIFY).json() for _ in range(5)]
    finally:
        is_over.set()
        for worker in workers:
            worker.join(120)
    assert [report["intact"] for report in reports] == [True] * 5
    assert reports[-1]["events_checked"] > reports[0]["events_checked"]


def test_two_walks_at_once_have_one_reader_after_the_other(gate: Gateway, operator: Bearer) -> None:
    with stopped_reader(gate, operator) as (reader, first):
        second = Asking(gate.operator())
        reader.resume()
        assert first.answered().json()["intact"] is True
        assert second.answered().json()["intact"] is True


@only_root
def test_a_reader_has_the_database_to_read_and_no_key_file(gate: Gateway, operator: Bearer) -> None:
    with stopped_reader(gate, operator) as (reader, _):
        files = {*descriptors(reader.pid).values(), *mapped_files(reader.pid)}
        assert not [file for file in files if "/keys" in file or file.endswith(".pem")]
        assert status(reader.pid, "Threads") == "1"


def test_a_reader_ends_with_its_front(gate: Gateway, operator: Bearer) -> None:
    with stopped_reader(gate, operator) as (reader, asking):
        front = gate.child("front").pid
        os.kill(front, signal.SIGKILL)
        wait_for(lambda: not is_running(reader.pid), "the end of the reader")
        asking.join(120)
    wait_for(gate.is_ready, "the front's successor")
    assert operator.get(VERIFY).json()["intact"] is True
