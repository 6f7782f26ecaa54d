"""Calls that are under way for exactly as long as a test wants, however long anything else takes.

All workers are stopped by a signal before one of them gets the call: it is dispatched, and can't be answered until they
go on. No test here depends on timing, and no provider has to use processor time.
"""

import contextlib
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import psutil

from tests.conformance.deployment import Caller, Deployment
from tests.support.background import Background
from tests.support.gateway import wait_for

Intent = dict[str, Any]
COMPUTING_SECONDS = 0.1
"""Processor seconds: more than a worker needs to read its pending messages."""


def intents(gate: Deployment) -> list[Intent]:
    """Calls that were dispatched and have no receipt, newest first."""
    answer = gate.operator().get("/v1/admin/intents?limit=1000")
    assert answer.status_code == 200, answer.text
    return list(answer.json()["intents"])


class StillWorkers:
    """The workers of a gateway while they stand still. One call of a profile can be begun."""

    def __init__(self, gate: Deployment, workers: list[psutil.Process]) -> None:
        self._gate = gate
        self._workers = workers

    def begin(self, call: Callable[[], httpx.Response], *, runs: bool = False) -> tuple[Background, Intent]:
        """The call, once its worker has been told, and its intent. `runs`: a call that computes until it is ended; its
        worker stands still in the middle of it."""
        known = {one["intent_id"] for one in intents(self._gate)}
        begun = Background(call)
        new_intents = wait_for(
            lambda: [one for one in intents(self._gate) if one["intent_id"] not in known], "the dispatch"
        )
        if runs:
            self._until_computing()
        return begun, new_intents[0]

    def _until_computing(self) -> None:
        workers = [one for one in self._workers if _is_of(one, "compute")]
        before = {one.pid: _used_by(one) for one in workers}
        self.go_on("compute")
        wait_for(
            lambda: any(_used_by(one) > before[one.pid] + COMPUTING_SECONDS for one in workers),
            "a worker that computes",
        )
        stand_still(workers)

    def go_on(self, profile: str = "") -> None:
        """Let the workers of this profile go on, or all."""
        for one in self._workers:
            with contextlib.suppress(psutil.NoSuchProcess):  # it was killed meanwhile
                if _is_of(one, profile):
                    one.send_signal(signal.SIGCONT)


@contextmanager
def still_workers(gate: Deployment, agent: Caller | None = None, *, files: bool = False) -> Iterator[StillWorkers]:
    """Every worker stands still until the block ends. A compute worker can take a call; with `files` another one, too.

    The worker that served last is chosen next: so a call before, by `agent` or by a fresh lease, makes sure that a
    worker is there, and is chosen before any other that is just coming.
    """
    agent = agent or gate.agent()
    assert agent.execute("text_digest", {"text": "warm"}).status_code == 200
    if files:
        assert agent.execute("file_write", {"path": "warm.txt", "content": "warm"}).status_code == 200
    template = gate.gateway.child("template")
    workers: list[psutil.Process] = []
    try:
        stand_still([template])  # so that no worker is forked unseen
        workers += template.children()
        stand_still(workers)
        template.send_signal(signal.SIGCONT)
        yield StillWorkers(gate, workers)
    finally:
        for one in (template, *workers):
            with contextlib.suppress(psutil.NoSuchProcess):
                one.send_signal(signal.SIGCONT)


def stand_still(processes: list[psutil.Process]) -> None:
    """Stop processes, and wait until they have stopped, or are gone: a worker may have been about to leave."""
    for one in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            one.send_signal(signal.SIGSTOP)
    wait_for(lambda: all(map(_rests, processes)), "processes that stand still")


def _rests(process: psutil.Process) -> bool:
    try:
        return process.status() in (psutil.STATUS_STOPPED, psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


def _used_by(worker: psutil.Process) -> float:
    """The processor seconds that it has used; 0 once it is gone."""
    try:
        return float(sum(worker.cpu_times()[:2]))
    except psutil.NoSuchProcess:
        return 0.0


def _is_of(worker: psutil.Process, profile: str) -> bool:
    try:
        return " ".join(worker.cmdline()).startswith(f"gateway: worker {profile}")
    except psutil.NoSuchProcess:
        return False
