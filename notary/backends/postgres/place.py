"""Where a PostgreSQL is, and how it is connected to: every wait has a deadline, no password is in an address."""

import logging
import os
import pwd
import time
from pathlib import Path
from typing import Any, Final

import msgspec
import psycopg
from psycopg.abc import RV, PQGen

from ipc.backends.postgres_address import PostgresAddress, parse_postgres_url
from ipc.network.name_addresses import numeric_addresses
from ipc.process.private_files import read_private
from ipc.settings import LedgerSettings

PREPARED: Final = 400
logging.getLogger("psycopg").addHandler(logging.NullHandler())
logging.getLogger("psycopg").propagate = False


class PostgresTimeouts(msgspec.Struct, frozen=True):
    """For how long a PostgreSQL is waited for, and waits itself, in seconds."""

    connect: int = 2
    unit: float = 4.0
    """All waits of one unit together: its fronts give up after ten."""
    lock: float = 2.0
    """For the unit of another gateway that shares the ledger; no longer than half of `unit`."""
    idle: float = 5.0
    """The server ends a unit whose gateway says nothing for so long: it must not keep the lock from others."""


WAITS: Final = PostgresTimeouts()


class PostgresConnection(psycopg.Connection[Any]):
    """One connection. `until` (monotonic) is when the last of its waits ends."""

    until = float("inf")

    def wait(self, gen: PQGen[RV], interval: float = 0.1, timeout: float | None = None) -> RV:
        """See psycopg: no longer than until then."""
        left = self.until - time.monotonic()
        if left < float("inf"):
            timeout = max(left, 0.001) if timeout is None else min(timeout, max(left, 0.001))
        return super().wait(gen, interval, timeout)

    def hurry(self, seconds: float = WAITS.unit) -> None:
        """From now on, fail a statement that is not answered in this time."""
        self.until = time.monotonic() + seconds


class SettingsDropped(psycopg.OperationalError):
    """A connection without the settings that it was asked for, such as that of a pooler which ignores them."""


class PostgresTarget:
    """The server of one ledger. Looks its name up once: a notary behind its walls can't. Raises ValueError, OSError."""

    def __init__(self, settings: LedgerSettings, waits: PostgresTimeouts = WAITS) -> None:
        self.address: PostgresAddress = parse_postgres_url(settings.url or "")
        self.waits = waits
        self._password_file, self._ca_file = settings.password_file, settings.ca_file
        self._user = self.address.user or _own_name()
        self._numeric: tuple[str, ...] = ()
        """All addresses of the name, in the order in which they are tried: the one that answered last is the first."""
        if self.address.host is not None:
            self._numeric = numeric_addresses(self.address.host, self.address.port)

    def connect(self, *, reads: bool = False) -> PostgresConnection:
        """A connection that has answered, with the settings that were asked for; `reads`: one that can't write, and may
        take its time. Raises psycopg.Error, OSError, KeyFileError."""
        line = PostgresConnection.connect(**self._parameters(reads=reads), autocommit=True, prepare_threshold=0)
        try:
            line.prepared_max = PREPARED
            self._check_settings(line, self._settings(reads=reads))
        except BaseException:
            line.close()
            raise
        self._numeric = tuple(sorted(self._numeric, key=lambda one: one != line.info.hostaddr))
        return line

    def _settings(self, *, reads: bool) -> dict[str, str]:
        """The settings that every connection must have, as `pg_settings` shows them."""
        waits = self.waits
        limits = {
            "statement_timeout": 0 if reads else waits.unit, "lock_timeout": min(waits.lock, waits.unit / 2),
            "idle_in_transaction_session_timeout": 60 if reads else waits.idle,
        }  # fmt: skip
        return {name: str(int(value * 1000)) for name, value in limits.items()} | {
            "client_encoding": "UTF8", "TimeZone": "UTC", "default_transaction_isolation": "read committed",
            **({"default_transaction_read_only": "on"} if reads else {}),
        }  # fmt: skip

    def _check_settings(self, line: PostgresConnection, asked: dict[str, str]) -> None:
        """SECURITY: without its time limits a unit could hold the ledger's lock for ever."""
        line.hurry(self.waits.unit)
        rows = line.execute("SELECT name, setting FROM pg_settings WHERE name = ANY(%s)", [list(asked)]).fetchall()
        line.until = float("inf")
        found = dict(rows)
        for name, value in asked.items():
            if found.get(name) != value:
                raise SettingsDropped(
                    f"{name} is {found.get(name)!r} and not {value!r}, which was asked for: a pooler between drops the "
                    f"settings of sessions. Name the server itself."
                )

    def _parameters(self, *, reads: bool) -> dict[str, Any]:
        address, waits = self.address, self.waits
        options = [f"-c {name}={_escaped(value)}" for name, value in self._settings(reads=reads).items()]
        parameters: dict[str, Any] = {
            "dbname": address.database, "port": address.port, "user": self._user,
            "host": address.folder or address.host, "options": " ".join(options), "gssencmode": "disable",
            "application_name": "gateway-reader" if reads else "gateway-notary", "connect_timeout": waits.connect,
            "sslmode": "disable" if self._ca_file is None else "verify-full", "passfile": f"{os.devnull}/none",
            "channel_binding": "prefer", "keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3,
            "tcp_user_timeout": int(waits.unit * 1000),
        }  # fmt: skip
        if self._numeric:
            names = [address.host or ""] * len(self._numeric)
            parameters |= {"hostaddr": ",".join(self._numeric), "host": ",".join(names)}
        if self._ca_file is not None:
            parameters |= {"sslrootcert": self._ca_file, "sslcert": "", "sslkey": ""}
        if self._password_file is not None:
            parameters["password"] = read_private(Path(self._password_file)).decode().strip("\r\n")
        return parameters


def _escaped(value: str) -> str:
    """As libpq takes it within `options`."""
    return value.replace(" ", r"\ ")


def _own_name() -> str:
    """As libpq does it, but once: a process behind walls may not ask who it is."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())


def said_of(error: Exception) -> str:
    """The text of an error of the client, without parts that could be data of a user."""
    if isinstance(error, psycopg.errors._WaitTimeout):
        return "PostgreSQL: no answer in time"
    if isinstance(error, psycopg.Error):
        told = error.diag.message_primary or (str(error).strip().splitlines() or [""])[0]
        return f"PostgreSQL: {told[:200] or type(error).__name__}"
    return f"PostgreSQL: {type(error).__name__}: {str(error)[:200]}"
