"""A real PostgreSQL: a cluster of its own in a folder of the test, as an ordinary user, on a port and a Unix socket."""

import itertools
import os
import signal
from pathlib import Path

from bench.servers import USER, Cluster
from bench.servers import postgres_programs as programs
from ipc.settings import LedgerSettings
from tests.support.ports import free_port

_SETTINGS = (
    "listen_addresses = '127.0.0.1'", "max_connections = 40", "shared_buffers = 16MB", "log_min_messages = fatal",
    "full_page_writes = on", "synchronous_commit = on", "autovacuum = off", "max_wal_size = 64MB",
    "min_wal_size = 32MB",
)  # fmt: skip
__all__ = ["USER", "PostgresServer", "programs"]
_databases = itertools.count(1)


class PostgresServer(Cluster):
    """One cluster. `more` are lines of its configuration."""

    def __init__(self, *more: str) -> None:
        super().__init__((*_SETTINGS, *more), free_port())

    def new_database(self) -> str:
        """An empty one; its name."""
        name = f"ledger_{next(_databases)}"
        self.ask(f"CREATE DATABASE {name}")
        return name

    def settings(self, database: str, *, by_tcp: bool = False) -> LedgerSettings:
        """Of a gateway whose ledger it is."""
        if by_tcp:
            return LedgerSettings(url=f"postgresql://{USER}@127.0.0.1:{self.port}/{database}")
        return LedgerSettings(url=self.url(database))

    def freeze(self) -> None:
        """It takes connections, and says nothing."""
        for process in self._all():
            os.kill(process, signal.SIGSTOP)

    def thaw(self) -> None:
        """It goes on with what it has read."""
        for process in self._all():
            os.kill(process, signal.SIGCONT)

    def _all(self) -> list[int]:
        """The postmaster first; each of its processes leads a session of its own."""
        assert self.process is not None, "it runs"
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return [self.process.pid, *map(int, children)]

    def kill(self) -> None:
        """As if its machine lost power: every process at once."""
        for process in self._all():
            os.kill(process, signal.SIGKILL)
        assert self.process is not None, "it ran"
        self.process.wait(30)
        (self.data / "postmaster.pid").unlink(missing_ok=True)

    def restart(self) -> None:
        """Killed, and started again."""
        self.kill()
        self.start()
