"""A real PostgreSQL: a cluster of its own in a folder of the test, as an ordinary user, on a port and a Unix socket."""

import itertools
import os
import shutil
import signal
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import psutil
import psycopg

from bench.servers import USER, Cluster
from bench.servers import postgres_programs as programs
from ipc.settings import LedgerSettings
from tests.support.gateway import wait_for
from tests.support.ports import free_port
from tests.support.processes import is_running

_SETTINGS = (
    "listen_addresses = '127.0.0.1'", "max_connections = 40", "shared_buffers = 16MB", "log_min_messages = fatal",
    "full_page_writes = on", "synchronous_commit = on", "autovacuum = off", "max_wal_size = 64MB",
    "min_wal_size = 32MB",
)  # fmt: skip
__all__ = ["USER", "PostgresServer", "programs"]
STANDING = (psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP, psutil.STATUS_ZOMBIE)
_databases = itertools.count(1)


class PostgresServer(Cluster):
    """One cluster. `more` are lines of its configuration."""

    def __init__(self, *more: str, within: Sequence[str] = ()) -> None:
        super().__init__((*_SETTINGS, *more), free_port(), within)
        self._used: list[str] = []

    def admit(self, line: str, **files: Path) -> None:
        """Let in whom this line of its pg_hba.conf names; `files` are copied beside it, for its user alone."""
        for name, source in files.items():
            shutil.copy(source, self.data / name)
            (self.data / name).chmod(0o600)
            if os.geteuid() == 0:
                shutil.chown(self.data / name, "nobody", "nogroup")
        with (self.data / "pg_hba.conf").open("a") as file:
            file.write(f"{line}\n")

    def new_database(self) -> str:
        """The name of an empty database. A returned one is emptied, which costs a tenth of a new one."""
        while self._used:
            name = self._used.pop()
            with suppress(psycopg.Error):
                if self._empty(name):
                    return name
        name = f"ledger_{next(_databases)}"
        self.ask(f"CREATE DATABASE {name}")
        return name

    def give_back(self, database: str) -> None:
        """Return a database that the test needs no longer; its connections are about to end."""
        self._used.append(database)

    def _empty(self, database: str) -> bool:
        """Empty it; False while it has connections. Raises psycopg.Error."""
        if self.ask("SELECT 1 FROM pg_stat_activity WHERE datname = %s", database):
            return False
        self.ask(f"ALTER DATABASE {database} RESET ALL")
        with self.connect(database) as connection:
            connection.execute("DROP SCHEMA public CASCADE")
            connection.execute("CREATE SCHEMA public AUTHORIZATION pg_database_owner")
            connection.execute("GRANT USAGE ON SCHEMA public TO PUBLIC")
        return True

    def settings(self, database: str, *, by_tcp: bool = False) -> LedgerSettings:
        """The settings of a gateway with its ledger on this server."""
        if by_tcp:
            return LedgerSettings(url=f"postgresql://{USER}@127.0.0.1:{self.port}/{database}")
        return LedgerSettings(url=self.url(database))

    def freeze(self) -> None:
        """It takes connections, and says nothing."""
        self._signal_all(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it continue with its received requests."""
        self._signal_all(signal.SIGCONT)

    def _signal_all(self, number: signal.Signals) -> list[int]:
        """To every process, each of which leads a session of its own: the children of the postmaster, then itself. It
        stands still meanwhile, so that it starts none unseen. Returns the children."""
        assert self.process is not None, "it runs"
        postmaster = psutil.Process(self.process.pid)
        postmaster.send_signal(signal.SIGSTOP)
        wait_for(lambda: postmaster.status() in STANDING, "a postmaster that stands still")
        listed = Path(f"/proc/{postmaster.pid}/task/{postmaster.pid}/children").read_text()
        children = list(map(int, listed.split()))
        for process in (*children, postmaster.pid):
            with suppress(ProcessLookupError):  # one that was ending
                os.kill(process, number)
        return children

    def kill(self) -> None:
        """As if its machine lost power: every process at once. None is left that holds what the next start needs."""
        children = self._signal_all(signal.SIGKILL)
        assert self.process is not None, "it ran"
        self.process.wait(30)
        wait_for(lambda: not any(map(is_running, children)), "the end of all its processes")
        (self.data / "postmaster.pid").unlink(missing_ok=True)

    def restart(self) -> None:
        """Killed, and started again."""
        self.kill()
        self.start()
