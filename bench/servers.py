"""Servers that gateways share, each real, in a folder of its own: redis-server, PostgreSQL and OPA.

Programs are this machine's, or those that `make servers` fetched. Data is kept as in production: a Redis with its file,
a PostgreSQL that flushes. Each server ends with its block, or when it is closed. Tests start theirs from here, too.
"""

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import redis

from bench.measures import wait_until

REPOSITORY = Path(__file__).resolve().parent.parent
FETCHED = REPOSITORY / ".venv" / "servers"
BUILT = REPOSITORY / ".venv" / "go"
RULES = REPOSITORY / "contrib" / "policy" / "gateway.rego"
START_SECONDS = 180.0
STOP_SECONDS = 120
DURABLE = ("--appendonly", "yes", "--appendfsync", "everysec", "--maxmemory-policy", "noeviction")
BY_NOBODY = ("setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups")
USER = "gateway"
"""The administrator of a PostgreSQL cluster."""
PORT = 5432
"""Names the Unix socket of a cluster that listens on no port."""


class NoServerError(Exception):
    """A program is neither installed nor fetched; says which."""


def redis_program() -> str:
    """A redis-server. Raises NoServerError."""
    return shutil.which("redis-server") or _there("redis-server", FETCHED / "bin" / "redis-server")


def opa_program() -> str:
    """An opa. Raises NoServerError."""
    return shutil.which("opa") or _there("opa", BUILT / "opa")


def postgres_programs() -> Path:
    """The folder of initdb and postgres, the newest there is. Raises NoServerError."""
    roots = (Path("/usr/lib/postgresql"), FETCHED / "root/usr/lib/postgresql")
    folders = [one.parent for root in roots for one in root.glob("*/bin/postgres")]
    if not folders:
        raise NoServerError("there is no PostgreSQL: `make servers` fetches one")
    return max(folders, key=lambda folder: int(folder.parent.name))


def _there(name: str, path: Path) -> str:
    if not path.is_file():
        raise NoServerError(f"there is no {name}: `make servers` brings one")
    return str(path)


class Cluster:
    """A PostgreSQL cluster of a gateway's own, run by an ordinary user. `settings` are lines of its configuration,
    `within` the start of its command, for one in a network of its own."""

    def __init__(self, settings: Sequence[str] = (), port: int = PORT, within: Sequence[str] = ()) -> None:
        # Its user must reach it, which the folders of a test or of a run are not for.
        self.folder = Path(tempfile.mkdtemp(prefix="pg-", dir="/tmp"))
        self.data = self.folder / "data"
        self._said = self.folder / "said"
        self.port = port
        self.process: subprocess.Popen[bytes] | None = None
        self._within = tuple(within)
        # No PostgreSQL runs as root.
        self._user: dict[str, Any] = {"user": "nobody", "group": "nogroup", "extra_groups": []}
        if os.geteuid() != 0:
            self._user = {}
        else:
            shutil.chown(self.folder, "nobody", "nogroup")
        self.folder.chmod(0o755)
        command = ["initdb", "-D", str(self.data), "-U", USER, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"]
        self._run(command)
        lines = (f"unix_socket_directories = '{self.folder}'", f"port = {port}", "logging_collector = off", *settings)
        with (self.data / "postgresql.auto.conf").open("a") as file:
            file.write("\n".join(lines) + "\n")
        self.start()

    def start(self) -> None:
        """Until it answers."""
        command, user = [str(postgres_programs() / "postgres"), "-D", str(self.data)], self._user
        if self._within:
            # Only root enters another network, and gives itself up afterwards.
            command, user = [*self._within, *BY_NOBODY, *command], {}
        with self._said.open("wb") as said:
            self.process = subprocess.Popen(
                command, cwd="/", env=_environment(), stdin=subprocess.DEVNULL, stdout=said, stderr=said, **user
            )
        wait_until(self._answers, "a PostgreSQL that answers", START_SECONDS)

    def ask(self, statement: str, *values: Any, database: str = "postgres") -> list[tuple[Any, ...]]:
        """One statement of our own."""
        with self.connect(database) as connection:
            cursor = connection.execute(statement, values)
            return cursor.fetchall() if cursor.description else []

    def connect(self, database: str) -> "psycopg.Connection[tuple[Any, ...]]":
        """A connection of our own."""
        return psycopg.connect(
            host=str(self.folder), port=self.port, user=USER, dbname=database, autocommit=True, connect_timeout=60
        )

    def url(self, database: str) -> str:
        """The URL of a database by its Unix socket, as a gateway's configuration has it."""
        return f"postgresql://{USER}@/{database}?host={self.folder}&port={self.port}"

    def close(self) -> None:
        """The end."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGQUIT)
            self.process.wait(STOP_SECONDS)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _run(self, command: Sequence[str]) -> None:
        program = str(postgres_programs() / command[0])
        subprocess.run(
            [program, *command[1:]], check=True, capture_output=True, cwd="/", env=_environment(), **self._user
        )

    def _answers(self) -> bool:
        if self.process is None or self.process.poll() is not None:
            raise RuntimeError(f"a PostgreSQL ended as it started: {self._said.read_text()}")
        try:
            self.ask("SELECT 1")
        except psycopg.Error:
            return False
        return True


def _environment() -> dict[str, str]:
    """With the libraries that were fetched beside the programs."""
    root = FETCHED / "root"
    folders = [str(one) for pattern in ("usr/lib/*-linux-*", "lib/*-linux-*") for one in root.glob(pattern)]
    libraries = {"LD_LIBRARY_PATH": ":".join(folders)} if postgres_programs().is_relative_to(FETCHED) else {}
    return {"PATH": os.environ["PATH"], "LC_ALL": "C", **libraries}


def redis_command(folder: Path, port: int = 0) -> list[str]:
    """The command of a Redis whose socket, data and log lie in `folder`; port 0 for none."""
    return [
        redis_program(), "--port", str(port), "--bind", "127.0.0.1", "--unixsocket", str(folder / "redis.sock"),
        "--dir", str(folder), "--save", "", "--daemonize", "no", "--logfile", str(folder / "log"), *DURABLE,
    ]  # fmt: skip


def opa_command(
    address: str, files: Sequence[str] = (str(RULES),), options: Sequence[str] = (), program: str = ""
) -> list[str]:
    """The command of an OPA that serves on `address` and loads `files`."""
    run = (program or opa_program(), "run", "--server", "--disable-telemetry", "--log-level", "error")
    return [*run, "--addr", address, *options, *files]


@contextmanager
def redis_running(folder: Path) -> Iterator[tuple[str, int]]:
    """A Redis: its URL and its pid."""
    socket = folder / "redis.sock"

    def answers() -> bool:
        try:
            with redis.Redis(unix_socket_path=str(socket)) as client:
                return bool(client.ping())
        except redis.RedisError:
            return False

    with _running(redis_command(folder), folder, answers) as pid:
        yield f"unix://{socket}", pid


@contextmanager
def opa_running(folder: Path) -> Iterator[tuple[str, int]]:
    """An OPA with the default rules: its URL and its pid."""
    socket = folder / "opa.sock"
    with _running(opa_command(f"unix://{socket}"), folder, socket.is_socket) as pid:
        yield f"unix://{socket}", pid


@contextmanager
def postgres_running() -> Iterator[tuple[str, int]]:
    """A PostgreSQL with an empty database: the database's URL and the server's pid."""
    cluster = Cluster(("listen_addresses = ''",))
    try:
        cluster.ask("CREATE DATABASE ledger")
        assert cluster.process is not None, "it runs"
        yield cluster.url("ledger"), cluster.process.pid
    finally:
        cluster.close()


@contextmanager
def _running(command: Sequence[str], folder: Path, answers: Callable[[], bool]) -> Iterator[int]:
    with (folder / f"{Path(command[0]).name}.out").open("wb") as output:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd=folder)
    try:
        wait_until(answers, f"{command[0]} that answers", START_SECONDS)
        yield process.pid
    finally:
        process.kill()
        process.wait(STOP_SECONDS)
