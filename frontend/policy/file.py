"""The policy folder: read in a thread, its data.json replaced durably, one change at a time.

Guarantees that one front at a time changes the data, that readers see the old file or the new one whole, and that the
file keeps its mode. Never decides what goes into it.
"""

import contextlib
import os
import stat
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TypeVar

import trio

from frontend.deadlines import FileDeadlines, PolicyDeadlines
from frontend.files.exclusive import Exclusive, FileTurn, NotChanged
from frontend.policy.acl import DATA_FILE, PolicyFiles, read_policy
from frontend.policy.engine import PolicyRefused

MAX_THREADS = 4
"""A folder that does not answer keeps the threads that looked into it. Not those that others have work for."""

T = TypeVar("T")


class _Looks:
    """Looks at single files, each in one of these threads and in this time."""

    def __init__(self, threads: trio.CapacityLimiter, seconds: float) -> None:
        self._threads = threads
        self._seconds = seconds

    async def look(self, path: Path, look: Callable[[], T]) -> T:
        """Return the result of `look` at `path`. Raises NotChanged."""
        with trio.move_on_after(self._seconds):
            try:
                return await trio.to_thread.run_sync(look, abandon_on_cancel=True, limiter=self._threads)
            except (OSError, RuntimeError) as error:  # a loop of links is the latter
                raise NotChanged(f"{path}: {error}") from None
        raise NotChanged(f"{path}: does not answer within {self._seconds:g} s")


def _give_mode(path: Path, mode: int) -> None:
    """As `chmod`, which no walled process may use: by a file that it could open. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        os.fchmod(descriptor, mode)
    finally:
        os.close(descriptor)


class DataTurn:
    """One turn at data.json."""

    def __init__(self, path: Path, turn: FileTurn, looks: _Looks) -> None:
        self._path = path
        self._turn = turn
        self._looks = looks

    async def replace(self, text: str) -> None:
        """Put `text` in the file's place, durably and at once; ends the turn. Raises NotChanged."""
        path = self._path
        mode = await self._looks.look(path, lambda: stat.S_IMODE(path.stat().st_mode))
        await self._turn.replace(text.encode())
        # It was written for the gateway alone; those who could read it go on reading it.
        with contextlib.suppress(NotChanged):
            await self._looks.look(path, partial(_give_mode, path, mode))


class PolicyFile:
    """The files of one `policy_dir`."""

    def __init__(
        self, policy_dir: str, deadlines: PolicyDeadlines = PolicyDeadlines(), files: FileDeadlines = FileDeadlines(),
        *, has_rules: bool = True,
    ) -> None:  # fmt: skip
        """`has_rules`: the rules are here too, and not in an OPA."""
        self._folder = policy_dir
        self._has_rules = has_rules
        self.deadlines = deadlines
        """For what begins from now on."""
        self._files = files
        self._threads = trio.CapacityLimiter(MAX_THREADS)

    async def read(self) -> PolicyFiles:
        """Read the policy from the disk. Raises PolicyRefused."""
        seconds = self.deadlines.read_seconds
        with trio.move_on_after(seconds):
            read = partial(read_policy, self._folder, has_rules=self._has_rules)
            return await trio.to_thread.run_sync(read, abandon_on_cancel=True, limiter=self._threads)
        raise PolicyRefused((f"{self._folder}: was not read within {seconds:g} s",))

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[DataTurn]:
        """No other front changes data.json inside this block. Raises NotChanged when it can't be changed at all."""
        named = Path(self._folder, DATA_FILE)
        looks = _Looks(self._threads, self.deadlines.look_seconds)
        # A link stays a link: what it leads to is replaced.
        path = await looks.look(named, named.resolve)
        async with Exclusive(path, deadlines=self._files).turn() as turn:
            yield DataTurn(path, turn, looks)
