"""Live sync: the file of domains that the egress proxy allows, kept at what actions may reach (docs/egress.md).

Guarantees that the file is replaced whole or not at all, that a domain stands there before it counts, that one which
was taken back is gone before that is answered, and that what lies there and is not ours is neither followed nor written
over. A file that is too wide for a moment harms nothing, since workers hold each action to its own list; one that is
too narrow breaks calls. Never speaks to the proxy, which has to be told to read it again.
"""

import math
import os
import stat
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from functools import lru_cache
from pathlib import Path

import trio

from frontend.actions.registry import Registry
from frontend.actions.targets import NOTHING_LEARNED, Learned
from frontend.deadlines import EgressDeadlines, FileDeadlines
from frontend.files.exclusive import Exclusive, NotChanged
from frontend.shared.memory import SharedMemory
from frontend.telemetry.logs import log
from frontend.telemetry.present import Presence
from ipc.process.exits import Exit
from ipc.process.private_files import PrivateFileError, check_folder, remove_unfinished, write_whole

LOCK_NAME = "egress-allowlist.lock"
"""In the state directory: the file's own folder may be the proxy's."""
HEAD = "# written by the gateway; changes are overwritten"
MODE = 0o644
"""The proxy runs as another user. Names of domains are no secrets."""


class ListNotWritten(Exception):
    """The file could not be updated; the message has the cause and the mend."""


@lru_cache(maxsize=4)
def squid_list(rules: frozenset[str]) -> bytes:
    """The file for these rules (normal form), as squid's `dstdomain` reads it: sorted, no entry covers another.

    `.example.com` is all that lies below example.com and the name itself too. SECURITY: squid refuses to start when an
    entry covers another, or drops one of them.
    """
    tops = {rule[2:] for rule in rules if rule.startswith("*.")}
    entries = [f".{name}" for name in tops if tops.isdisjoint(_above(name))]
    entries += [
        rule for rule in rules if not rule.startswith("*.") and rule not in tops and tops.isdisjoint(_above(rule))
    ]
    return "".join(f"{line}\n" for line in (HEAD, *sorted(entries))).encode("ascii")


def _above(name: str) -> Iterator[str]:
    """The names that this one lies below, nearest first."""
    while "." in name:
        name = name.partition(".")[2]
        yield name


def list_file(path: str | None, folder: Path, deadlines: FileDeadlines = FileDeadlines()) -> Exclusive | None:
    """The file at this path, to be changed in turns by a lock in `folder`; None without a path."""
    return None if path is None else Exclusive(Path(path), folder / LOCK_NAME, deadlines)


class ProxyAllowList:
    """The file of one gateway. Without one there is no live sync: nothing is written, and nothing fails.

    `registry` and `learned` (action id -> what it has learned) give what is in force when they are asked.
    """

    def __init__(
        self, file: Exclusive | None, registry: Callable[[], Registry], learned: Callable[[], Mapping[str, Learned]],
        presence: Presence | None = None, deadlines: EgressDeadlines = EgressDeadlines(), *, is_successor: bool = False,
    ) -> None:  # fmt: skip
        """`is_successor`: a front served before this one, so that the first list may follow when it can be written.
        `presence` tells the other fronts what is about to count here, and what is there."""
        self._file = file
        self._registry = registry
        self._learned = learned
        self._look_seconds = deadlines.look_seconds
        self._coming: list[frozenset[str]] = []
        """Rules that are about to count."""
        self._presence = presence or Presence(SharedMemory.alone())
        self._complaint = ""
        self._may_follow = is_successor

    def reach_of(self, registry: Registry) -> frozenset[str]:
        """All rules of these actions, together: those of the manifests, and those that were learned for them."""
        learned, domains = self._learned(), set[str]()
        for action in registry.actions:
            if action.egress_profile != "none":
                domains.update(action.allowed_domains)
                domains.update(learned.get(action.action_id, NOTHING_LEARNED).domains)
        return frozenset(domains)

    def serves(self, action_id: str) -> bool:
        """Whether rules of this action belong into the list: it is registered, and may reach something."""
        action = self._registry().get(action_id)
        return action is not None and action.egress_profile != "none"

    async def sync(self) -> None:
        """Return once the file has all names in force. Raises ListNotWritten."""
        if self._file is None:
            return
        path = self._file.path
        try:
            async with self._file.turn() as turn:
                # Looked up in this turn: the last writer has seen the changes of all before it.
                rules = self.reach_of(self._registry()).union(*self._coming, self._presence.coming())
                entries = await turn.perform(lambda: _put(path, squid_list(rules)))
        except NotChanged as error:
            raise ListNotWritten(f"egress.proxy_allowlist_file: {error}") from None
        self._complaint = ""
        if entries is not None:
            log.info("the allow-list of the egress proxy was written", entries=entries)

    @asynccontextmanager
    async def wider(self, rules: Iterable[str], *, settle_seconds: float = math.inf) -> AsyncIterator[None]:
        """In this block, which is where they come to count, the file holds these rules besides those in force.

        Raises ListNotWritten before the block begins. At its end the file is brought to what is in force then; where
        that fails, or is not done within `settle_seconds`, the rest is for `watch`.
        """
        if self._file is None:
            yield
            return
        coming = frozenset(rules)
        self._coming.append(coming)
        self._tell_coming()
        is_listed = False
        try:
            await self._sync_now()
            is_listed = True
            yield
        finally:
            self._coming.remove(coming)
            self._tell_coming()
            if is_listed:
                with trio.move_on_after(settle_seconds, shield=True):
                    await self._try()

    def _tell_coming(self) -> None:
        self._presence.tell_coming(frozenset[str]().union(*self._coming))

    async def _sync_now(self) -> None:
        try:
            await self.sync()
        except ListNotWritten as error:
            if not self._may_follow:
                raise
            self._complain(str(error))
        self._may_follow = False

    async def watch(self) -> None:
        """Restore the file's content after any change from outside, for as long as the front lives."""
        while self._file is not None:
            await trio.sleep(self._look_seconds)
            await self._try()

    async def _try(self) -> None:
        try:
            await self.sync()
        except ListNotWritten as error:
            self._complain(str(error))
        except Exception as error:  # an internal error in writing a list must not stop the front
            self._complain(type(error).__name__, error)

    def _complain(self, problem: str, error: Exception | None = None) -> None:
        """Say it once."""
        if problem != self._complaint:
            text = "the allow-list of the egress proxy is out of date; writing it is tried again each second"
            log.error(text, problem=problem, exc_info=error)
        self._complaint = problem


def _put(path: Path, content: bytes) -> int | None:
    """Make `content` the file's, durably and at once; how many entries that are, None when it was so already.

    The caller has the turn. Raises KeyFileError, a sentence with its mend.
    """
    check_folder(path.parent, is_private=False, mend="chmod go-w")
    try:
        if _has(path, content):
            return None
    except OSError as error:
        raise PrivateFileError(f"{path}: cannot look at it: {error.strerror}.", Exit.NO_PERMISSION) from None
    remove_unfinished(path)  # of a process that was killed in its turn
    write_whole(path, content, mode=MODE)
    return content.count(b"\n") - 1


def _has(path: Path, content: bytes) -> bool:
    """True if the file has exactly this content, readable for all. Raises KeyFileError for a file of another owner
    or kind."""
    try:
        status = path.lstat()
    except FileNotFoundError:
        return False
    if stat.S_ISLNK(status.st_mode):
        raise PrivateFileError(f"{path}: is a link. Name the file itself.", Exit.CONFIG)
    if not stat.S_ISREG(status.st_mode):
        raise PrivateFileError(f"{path}: is not a regular file. Move it away, or name another.", Exit.CONFIG)
    if status.st_uid != os.geteuid():
        text = f"{path}: belongs to user id {status.st_uid}, not to {os.geteuid()} who runs this. Use chown."
        raise PrivateFileError(text, Exit.NO_PERMISSION)
    if stat.S_IMODE(status.st_mode) != MODE or status.st_size != len(content):
        return False
    # SECURITY: no other user may write in the folder, so the file that was looked at is the one opened.
    with open(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
        return file.read() == content
