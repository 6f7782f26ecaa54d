"""The configuration file read again while the gateway runs: what of it a reload puts in force, what needs a restart.

Compares what the file said when it was read last with what it says now; what a start makes of it (sockets, keys, the
shares of each front) does not count. Guarantees that nothing but what ipc/reloadable.py names ever follows. Settings go
by their names here, never by their values.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec
import trio

from ipc.reloadable import RELOADABLE, Reloadable, differing, reloadable_of, with_reloadable
from ipc.settings import Settings
from supervisor.settings.checks.production import weakened
from supervisor.settings.config import Loaded
from supervisor.settings.in_force import keep_in_force
from supervisor.settings.problems import in_order

READ_SECONDS = 10.0
"""For the file, and the files of operators' keys that it names."""
MAX_PROBLEMS = 100
"""The most problems of one file in one message."""

Reread = Callable[[], Loaded]


class RereadFile(msgspec.Struct, frozen=True):
    """The changes that the file asks for now. With `problems` none of them may be used."""

    problems: tuple[str, ...] = ()
    reloadable: Reloadable | None = None
    """The settings that every process must have after the reload; None if they have them already."""
    configured: Settings | None = None
    """The settings in force after the reload, in the form of the file."""
    changed: tuple[str, ...] = ()
    needs_restart: tuple[str, ...] = ()


@dataclass
class Rereading:
    """Owns what the configuration file said that is in force. `reread` None: there is no file, and nothing changes."""

    configured: Settings
    reread: Reread | None = None

    def keep(self, configured: Settings) -> None:
        """This is in force now."""
        self.configured = configured
        keep_in_force(Path(configured.state_dir), configured)

    async def look(self, settings: Settings) -> RereadFile:
        """Read it again; `settings` are those that the processes have."""
        if self.reread is None:
            return RereadFile()
        with trio.move_on_after(READ_SECONDS):
            try:
                loaded = await trio.to_thread.run_sync(self._read, abandon_on_cancel=True)
            except RuntimeError as error:  # the system gives no thread
                loaded = f"the configuration file can't be read: {error}"
            if isinstance(loaded, str):
                return RereadFile((loaded,))
            problems = tuple(str(problem) for problem in in_order(loaded.problems))
            if loaded.settings is None or problems:
                return RereadFile(problems[:MAX_PROBLEMS] or ("the configuration file will not do",))
            return self.change(settings, loaded.settings)
        return RereadFile((f"the configuration file was not read within {READ_SECONDS:g} s",))

    def change(self, settings: Settings, read: Settings) -> RereadFile:
        """Return the changes from `settings`, which the processes have, to `read`, the whole content of the file."""
        names = differing(self.configured, read)
        changed = tuple(name for name in names if name in RELOADABLE)
        needs_restart = tuple(name for name in names if name not in RELOADABLE)
        if not changed:
            return RereadFile(needs_restart=needs_restart)
        # Operators that no file names: `gateway dev` makes one.
        made = settings.operators[len(self.configured.operators) :]
        operators = (*read.operators, *made)
        fresh = msgspec.structs.replace(reloadable_of(read), operators=operators)
        fresh = msgspec.structs.replace(fresh, weakened=weakened(with_reloadable(settings, fresh)))
        configured = with_reloadable(self.configured, reloadable_of(read))
        return RereadFile((), fresh, configured, changed, needs_restart)

    def _read(self) -> Loaded | str:
        assert self.reread is not None
        try:
            return self.reread()
        except OSError as error:
            return f"the configuration file can't be read: {error.strerror}"
