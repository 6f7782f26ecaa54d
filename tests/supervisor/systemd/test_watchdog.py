"""The watchdog: fed while everything answers, and not a moment longer."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from supervisor.systemd.notify import Notifier
from supervisor.systemd.watchdog import SignOfLife, Watchdog, watchdog_seconds

SECONDS = 8.0


class Heard:
    """A service manager that counts beats."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        sock.setblocking(False)

    def beats(self) -> int:
        """Since the last look."""
        count = 0
        while True:
            try:
                assert self._socket.recv(100) == b"WATCHDOG=1"
            except BlockingIOError:
                return count
            count += 1


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[tuple[Notifier, Heard]]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.bind(str(tmp_path / "notify"))
        yield Notifier(str(tmp_path / "notify")), Heard(sock)


async def pass_time(clock: MockClock, seconds: float) -> None:
    for _ in range(int(seconds)):
        await wait_all_tasks_blocked()
        clock.jump(1.0)
    await wait_all_tasks_blocked()


async def test_it_is_fed_twice_in_its_time_while_all_answer(
    manager: tuple[Notifier, Heard], mock_clock: MockClock
) -> None:
    notifier, heard = manager
    async with trio.open_nursery() as nursery:
        nursery.start_soon(Watchdog(notifier, SECONDS, lambda: None, lambda: {"notary": SignOfLife()}).run)
        await pass_time(mock_clock, SECONDS)
        assert heard.beats() >= 2
        nursery.cancel_scope.cancel()


async def test_it_starves_while_one_is_silent_and_is_fed_again_at_once_when_that_one_answers(
    manager: tuple[Notifier, Heard], mock_clock: MockClock
) -> None:
    notifier, heard = manager
    notary, front = SignOfLife(), SignOfLife()

    def ask() -> None:
        front.expect()  # a front that speaks by itself
        if not notary.is_owed:
            notary.expect()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(Watchdog(notifier, SECONDS, ask, lambda: {"notary": notary, "front 1": front}).run)
        await pass_time(mock_clock, SECONDS / 2 + 1)
        heard.beats()
        await pass_time(mock_clock, 3 * SECONDS)
        assert heard.beats() == 0
        notary.settle()
        await pass_time(mock_clock, 1)
        assert heard.beats() == 1
        nursery.cancel_scope.cancel()


async def test_a_process_that_is_being_started_owes_no_word(
    manager: tuple[Notifier, Heard], mock_clock: MockClock
) -> None:
    notifier, heard = manager
    pulse = SignOfLife()
    pulse.expect()
    pulse.settle()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(Watchdog(notifier, SECONDS, lambda: None, lambda: {"template": pulse}).run)
        await pass_time(mock_clock, 5 * SECONDS)
        assert heard.beats() >= 9
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize(
    ("environ", "seconds"),
    [
        ({}, None),
        ({"WATCHDOG_USEC": "30000000"}, 30.0),
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "1"}, None),
        ({"WATCHDOG_USEC": "0"}, None),
        ({"WATCHDOG_USEC": "soon"}, None),
        ({"WATCHDOG_USEC": "-5"}, None),
    ],
)
def test_it_is_fed_only_where_this_process_is_watched(environ: dict[str, str], seconds: float | None) -> None:
    assert watchdog_seconds(environ) == seconds
