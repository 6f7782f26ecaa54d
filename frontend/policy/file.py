"""The policy folder: read in a thread, its data.json replaced durably, one change at a time.

Guarantees that one front at a time changes the data, that readers see the old file or the new one whole, and that the
file keeps its mode. Never decides what goes into it.
"""

import contextlib
import stat
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

import trio

from frontend.files.exclusive import Exclusive, NotChanged, Turn
from frontend.policy.acl import DATA_FILE, PolicyFiles, read_policy
from frontend.policy.engine import PolicyRefused

READ_SECONDS = 30.0
LOOK_SECONDS = 5.0
MAX_THREADS = 4
"""A folder that does not answer keeps the threads that looked into it. Not those that others have work for."""

T = TypeVar("T")


class DataTurn:
    """One turn at data.json."""

    def __init__(self, path: Path, turn: Turn, threads: trio.CapacityLimiter) -> None:
        self._path = path
        self._turn = turn
        self._threads = threads

    async def replace(self, text: str) -> None:
        """Put `text` in the file's place, durably and at once; ends the turn. Raises NotChanged."""
        path = self._path
        mode = await _looked(path, lambda: stat.S_IMODE(path.stat().st_mode), self._threads)
        await self._turn.replace(text.encode())
        # It was written for the gateway alone; those who could read it go on reading it.
        with contextlib.suppress(NotChanged):
            await _looked(path, lambda: path.chmod(mode), self._threads)


class PolicyFile:
    """The files of one `policy_dir`."""

    def __init__(self, policy_dir: str) -> None:
        self._folder = policy_dir
        self._threads = trio.CapacityLimiter(MAX_THREADS)

    async def read(self) -> PolicyFiles:
        """The policy as it lies on the disk. Raises PolicyRefused."""
        with trio.move_on_after(READ_SECONDS):
            return await trio.to_thread.run_sync(
                read_policy, self._folder, abandon_on_cancel=True, limiter=self._threads
            )
        raise PolicyRefused((f"{self._folder}: was not read within {READ_SECONDS:g} s",))

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[DataTurn]:
        """No other front changes data.json inside this block. Raises NotChanged when it can't be changed at all."""
        named = Path(self._folder, DATA_FILE)
        # A link stays a link: what it leads to is replaced.
        path = await _looked(named, named.resolve, self._threads)
        async with Exclusive(path).turn() as turn:
            yield DataTurn(path, turn, self._threads)


async def _looked(path: Path, look: Callable[[], T], threads: trio.CapacityLimiter) -> T:
    with trio.move_on_after(LOOK_SECONDS):
        try:
            return await trio.to_thread.run_sync(look, abandon_on_cancel=True, limiter=threads)
        except (OSError, RuntimeError) as error:  # a loop of links is the latter
            raise NotChanged(f"{path}: {error}") from None
    raise NotChanged(f"{path}: does not answer within {LOOK_SECONDS:g} s")
