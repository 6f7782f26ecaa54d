"""A real PostgreSQL: a cluster of its own in a folder of the test, as an ordinary user, on a port and a Unix socket."""

import itertools
import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import psycopg

from ipc.settings import LedgerSettings
from tests.support.gateway import wait_for
from tests.support.ports import free_port

FETCHED = Path(__file__).resolve().parents[2] / ".venv" / "servers" / "root" / "usr" / "lib" / "postgresql"
USER = "gateway"
_SETTINGS = (
    "listen_addresses = '127.0.0.1'", "max_connections = 40", "shared_buffers = 16MB", "logging_collector = off",
    "log_min_messages = fatal", "full_page_writes = on", "synchronous_commit = on", "autovacuum = off",
    "max_wal_size = 64MB", "min_wal_size = 32MB",
)  # fmt: skip
_databases = itertools.count(1)


def programs() -> Path:
    """The folder of initdb and postgres: this machine's, the newest, or what scripts/servers.sh fetched."""
    found = [one.parent for root in (Path("/usr/lib/postgresql"), FETCHED) for one in root.glob("*/bin/postgres")]
    assert found, "no PostgreSQL to test with: run `make test`, which fetches one (scripts/servers.sh)"
    return max(found, key=lambda folder: int(folder.parent.name))


def _libraries() -> dict[str, str]:
    """Those that were fetched with it."""
    root = FETCHED.parents[2]
    folders = [str(one) for pattern in ("usr/lib/*-linux-*", "lib/*-linux-*") for one in root.glob(pattern)]
    return {"LD_LIBRARY_PATH": ":".join(folders)} if programs().is_relative_to(FETCHED) else {}


class PostgresServer:
    """One cluster. `more` are lines of its configuration."""

    def __init__(self, *more: str) -> None:
        # Its user must reach it, and pytest's folders are the user's of the tests alone.
        self.folder = Path(tempfile.mkdtemp(prefix="pg-", dir="/tmp"))
        self.data = self.folder / "data"
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        # No PostgreSQL runs as root.
        self._user: dict[str, Any] = {"user": "nobody", "group": "nogroup", "extra_groups": []}
        if os.geteuid() != 0:
            self._user = {}
        else:
            shutil.chown(self.folder, "nobody", "nogroup")
        self.folder.chmod(0o755)
        command = ["initdb", "-D", str(self.data), "-U", USER, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"]
        subprocess.run(
            [str(programs() / command[0]), *command[1:]], check=True, capture_output=True, cwd="/",
            env=self._environment, **self._user,
        )  # fmt: skip
        lines = "\n".join((*_SETTINGS, f"unix_socket_directories = '{self.folder}'", f"port = {self.port}", *more))
        with (self.data / "postgresql.auto.conf").open("a") as file:
            file.write(lines + "\n")
        self.start()

    @property
    def _environment(self) -> dict[str, str]:
        return {"PATH": os.environ["PATH"], "LC_ALL": "C", **_libraries()}

    def start(self) -> None:
        """Until it answers."""
        self._process = subprocess.Popen(
            [str(programs() / "postgres"), "-D", str(self.data)], cwd="/", env=self._environment,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **self._user,
        )  # fmt: skip
        wait_for(self._answers, "postgres")

    def _answers(self) -> bool:
        try:
            self.ask("SELECT 1")
        except psycopg.Error:
            return False
        return True

    def ask(self, statement: str, *values: Any, database: str = "postgres") -> list[tuple[Any, ...]]:
        """One statement of the test's own."""
        with self.connect(database) as connection:
            cursor = connection.execute(statement, values)
            return cursor.fetchall() if cursor.description else []

    def connect(self, database: str) -> "psycopg.Connection[tuple[Any, ...]]":
        """A connection of the test's own."""
        return psycopg.connect(
            host=str(self.folder), port=self.port, user=USER, dbname=database, autocommit=True, connect_timeout=5
        )

    def new_database(self) -> str:
        """An empty one; its name."""
        name = f"ledger_{next(_databases)}"
        self.ask(f"CREATE DATABASE {name}")
        return name

    def settings(self, database: str, *, by_tcp: bool = False) -> LedgerSettings:
        """Of a gateway whose ledger it is."""
        if by_tcp:
            return LedgerSettings(url=f"postgresql://{USER}@127.0.0.1:{self.port}/{database}")
        return LedgerSettings(url=f"postgresql://{USER}@/{database}?host={self.folder}&port={self.port}")

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
        assert self._process is not None, "it runs"
        children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children").read_text().split()
        return [self._process.pid, *map(int, children)]

    def kill(self) -> None:
        """As if its machine lost power: every process at once."""
        for process in self._all():
            os.kill(process, signal.SIGKILL)
        assert self._process is not None, "it ran"
        self._process.wait(30)
        (self.data / "postmaster.pid").unlink(missing_ok=True)

    def restart(self) -> None:
        """Killed, and started again."""
        self.kill()
        self.start()

    def close(self) -> None:
        """The end."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGQUIT)
            self._process.wait(30)
        shutil.rmtree(self.folder, ignore_errors=True)
