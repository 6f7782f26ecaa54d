"""A provider that has taken over its worker can do nothing of the escape table, in any profile, also in a thread for
shared calls.

The worker is the product's, from the fork to its walls, and so is the user that it becomes; the test plays its front
and notary. Each step has a worker of its own, since most of them end it.
"""

import json
import signal
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ipc.channel.blocking import ChannelClosed
from ipc.messages.calling import Result
from ipc.messages.forking import WorkerExited
from ipc.process.exits import Exit
from ipc.settings import Settings
from supervisor.children.walls import find_walls
from tests.support.escape_steps import IS_X86
from tests.support.escape_surroundings import surroundings
from tests.support.escape_table import ALL, ROWS, Row
from tests.support.worker_peers import Worker
from tests.support.worker_plans import make_plan, text
from tests.support.worker_template import Template, template

pytestmark = pytest.mark.skipif(not IS_X86, reason="the steps know the numbers of system calls of x86_64 alone")

SHARED = "http, shared"
MODES = {profile: (profile, "pooled") for profile in ALL} | {SHARED: ("http", "shared")}
"""Profile and isolation of the call that tries."""
AT_ONCE = 8
"""Workers that try at the same time."""


class Escapes:
    """A template whose workers try to escape, and what they would be after."""

    def __init__(self, running: Template, facts: dict[str, Any]) -> None:
        self.running = running
        self.facts = facts
        self._exits: dict[str, int] = {}

    def begin(self, mode: str, step: str) -> Worker:
        """Have a new worker try a step."""
        profile, isolation = MODES[mode]
        worker = self.running.born(profile)
        request = text({"step": step, "facts": self.facts})
        worker.start(make_plan(profile=profile, isolation=isolation, request=request), "c1")
        return worker

    def outcome(self, worker: Worker) -> str:
        """How the kernel refused it: the name of an error number or of the signal that ended the worker; or what it
        gained."""
        try:
            result = worker.receive(Result)
        except (ChannelClosed, ConnectionError):
            return signal.Signals(-self.exit_status(worker)).name
        assert worker.attested() == result
        worker.hang_up()
        assert self.exit_status(worker) == Exit.RECYCLED
        assert result.output is not None
        told = json.loads(result.output)
        return str(told.get("refused") or f"gained {told['got']}")

    def exit_status(self, worker: Worker) -> int:
        """Wait for a worker to end, while others do."""
        while worker.worker_id not in self._exits:
            exited = self.running.receive(WorkerExited)
            self._exits[exited.worker_id] = exited.status
        return self._exits[worker.worker_id]

    def outcomes(self, mode: str) -> dict[str, str]:
        """The outcome of each row."""
        rows = [row for row in ROWS if MODES[mode][0] in row.profiles]
        by_row: dict[str, str] = {}
        trying: deque[tuple[Row, Worker]] = deque()
        for row in rows:
            trying.append((row, self.begin(mode, row.name)))
            if len(trying) == AT_ONCE:
                one, worker = trying.popleft()
                by_row[one.name] = self.outcome(worker)
        return by_row | {one.name: self.outcome(worker) for one, worker in trying}


@pytest.fixture(scope="module")
def escapes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Escapes]:
    """The walls that a gateway would build here, and around them what they keep away."""
    outside: Path = tmp_path_factory.mktemp("escape")
    walls = find_walls(Settings(state_dir=str(outside), public_base_url="http://h"))
    with (
        surroundings(outside) as facts,
        template(
            outside, program="tests.support.escape_template", files_dir=str(outside / "files"), recycle_after_calls=1,
            walls=walls,
        ) as running,
    ):  # fmt: skip
        yield Escapes(running, facts | {"parent": running.process.pid})
        assert running.process.poll() is None, "the template lives"


@pytest.fixture(scope="module")
def outcomes(escapes: Escapes) -> dict[str, dict[str, str]]:
    """The outcome of every row in each mode."""
    return {mode: escapes.outcomes(mode) for mode in MODES}


CASES = [
    pytest.param(mode, row, id=f"{mode}: {row.name}")
    for row in ROWS
    for mode, (profile, _) in MODES.items()
    if profile in row.profiles
]


@pytest.mark.parametrize(("mode", "row"), CASES)
def test_no_worker_escapes(outcomes: dict[str, dict[str, str]], mode: str, row: Row) -> None:
    assert outcomes[mode][row.name] in row.allowed


@pytest.mark.parametrize("mode", MODES)
def test_a_worker_has_its_channels_and_the_standard_ones_alone(escapes: Escapes, mode: str) -> None:
    said = escapes.outcome(escapes.begin(mode, "descriptors"))
    wakes = ["other"] if "http" in mode else []  # by which the threads of a worker wake its loop
    assert said == f"gained {['other', 'other', 'other', *wakes, 'packets', 'stream']}"


@pytest.mark.parametrize("mode", MODES)
def test_a_worker_has_no_environment(escapes: Escapes, mode: str) -> None:
    assert escapes.outcome(escapes.begin(mode, "environment")) == "gained [{}, False]"
