"""Keeps a copy of each manifest that a load puts in force, in a thread: calls and other messages go on meanwhile.

Loads are recorded in order from a bounded queue. A load that can't be recorded is logged and stays in force: evidence
names its digests without the copies.
"""

import threading
import time
from functools import partial
from pathlib import Path
from typing import Final, NoReturn

import trio

from ipc.messages.manifests import ManifestsLoaded
from ipc.process.clock import iso
from ipc.process.private_files import PrivateFileError
from supervisor.keepers.fronts import FrontLife
from supervisor.life.archive import ArchiveDamaged, ManifestArchive
from supervisor.logs import log
from supervisor.state import SupervisorState

MAX_WAITING: Final = 8
RECORD_SECONDS: Final = 60.0
_FAILED: Final = "manifests in force were not copied: gateway actions rollback can't bring them back"


class HistoryRecorder:
    """Records what fronts report."""

    def __init__(self, state: SupervisorState) -> None:
        self._state = state
        self._queue, self._queued = trio.open_memory_channel[ManifestsLoaded](MAX_WAITING)
        self._unrecorded = 0
        self._at_work = threading.Lock()
        """Held by the thread that writes; one that hangs keeps it."""

    @property
    def is_idle(self) -> bool:
        """True when each load that was reported is recorded or has failed."""
        return not self._unrecorded

    def note(self, _front: FrontLife, message: ManifestsLoaded) -> None:
        """A front has put these in force."""
        try:
            self._queue.send_nowait(message)
            self._unrecorded += 1
        except trio.WouldBlock:
            log.error(_FAILED, cause="too many loads are waiting")

    async def run(self) -> NoReturn:
        """Record one load after the other."""
        while True:
            message = await self._queued.receive()
            await self._record(message)
            self._unrecorded -= 1
            self._state.condition.notify_all()

    async def _record(self, message: ManifestsLoaded) -> None:
        settings = self._state.settings
        archive, manifests = ManifestArchive(Path(settings.state_dir)), Path(settings.manifests_dir)
        modules = Path(settings.modules_dir or manifests / "modules")
        record = partial(self._in_turn, archive, message, manifests, modules)
        try:
            with trio.fail_after(RECORD_SECONDS):
                for problem in await trio.to_thread.run_sync(record, abandon_on_cancel=True):
                    log.error(_FAILED, cause=problem)
        except trio.TooSlowError:
            log.error(_FAILED, cause=f"the disk did not answer within {RECORD_SECONDS:.0f} s")
        except (ArchiveDamaged, PrivateFileError, OSError, RuntimeError) as error:  # the last: there is no thread
            log.error(_FAILED, cause=str(error))

    def _in_turn(
        self, archive: ManifestArchive, message: ManifestsLoaded, manifests: Path, modules: Path
    ) -> list[str]:  # fmt: skip
        if not self._at_work.acquire(blocking=False):
            return ["an earlier load is still being written"]
        try:
            return archive.record(message.manifests, manifests, modules, iso(time.time()))
        finally:
            self._at_work.release()
