"""One connection to a Redis: every wait has a deadline, and a Redis that is gone costs a call nothing more.

The first command that finds it gone waits for its deadline; those that follow fail at once, while a thread tries to
connect again. The new connection is taken over between two commands.
"""

import contextlib
import socket
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from ipc.backends.redis_address import RedisAddress, parse_redis_url
from ipc.network.name_addresses import numeric_addresses
from ipc.process.logs import log
from ipc.process.private_files import read_private
from ipc.settings import StoreSettings
from notary.backends.redis.scripts import Script
from notary.backends.redis.sentinels import Spot, master_of
from notary.store.contract import StoreGone

AGAIN_SECONDS: Final = 0.25
"""Between two attempts to connect again."""


class RedisTimeouts(msgspec.Struct, frozen=True):
    """For how long a Redis is waited for, in seconds."""

    connect: float = 0.25
    answer: float = 1.0
    """To one command."""


WAITS: Final = RedisTimeouts()


class RedisTarget:
    """Where a Redis is, and how it is spoken to. Names are looked up once. Raises ValueError, OSError, KeyFileError."""

    def __init__(self, settings: StoreSettings, waits: RedisTimeouts = WAITS) -> None:
        self._waits = waits
        self.address: RedisAddress = parse_redis_url(settings.redis_url or "")
        self._password_file, self._ca_file = settings.redis_password_file, settings.redis_ca_file
        own = () if self.address.host is None else ((self.address.host, self.address.port),)
        named = self.address.sentinels or own
        self._at = [Spot(host, one, port) for host, port in named for one in numeric_addresses(host, port)]

    def connect(self) -> "MasterConnection":
        """A connection that has answered. Raises redis.RedisError, OSError, KeyFileError."""
        return MasterConnection(self.pool().make_connection())

    def pool(self) -> "redis.ConnectionPool":
        """Makes connections that wait for nothing longer than they may. Raises redis.RedisError, OSError,
        KeyFileError."""
        known: dict[str, Any] = {
            "db": self.address.database, "username": self.address.user, "password": self._password(),
            "client_name": "gateway-notary",
        }  # fmt: skip
        if self.address.path is not None:
            return redis.ConnectionPool(
                connection_class=redis.UnixDomainSocketConnection, path=self.address.path, **self._common(), **known
            )
        spots = self._at
        if self.address.sentinels:
            spots = [master_of(self.address, {spot: self._pool_at(spot) for spot in spots})]
        elif len(spots) > 1:
            self._at = spots = self._first_that_answers(spots)
        return self._pool_at(spots[0], **known)

    def _first_that_answers(self, spots: list[Spot]) -> list[Spot]:
        """The addresses of one name, the first of them that takes a connection in front."""
        for spot in spots:
            with contextlib.suppress(OSError), socket.create_connection(spot[1:], self._waits.connect):
                return [spot, *(one for one in spots if one != spot)]
        return spots

    def _pool_at(self, spot: Spot, **known: Any) -> "redis.ConnectionPool":
        if not self.address.is_tls:
            return redis.ConnectionPool(host=spot.numeric, port=spot.port, **self._common(), **known)
        tls: dict[str, Any] = {"ssl_cert_reqs": "required", "ssl_check_hostname": True, "ssl_ca_certs": self._ca_file}
        return redis.ConnectionPool(
            connection_class=_named(spot.numeric), host=spot.host, port=spot.port, **self._common(), **tls, **known
        )

    def _common(self) -> dict[str, Any]:
        """Options of all connections."""
        return {
            "socket_timeout": self._waits.answer, "socket_connect_timeout": self._waits.connect,
            "decode_responses": True, "retry": Retry(NoBackoff(), 0), "retry_on_error": [],
            "health_check_interval": 0, "protocol": 2, "driver_info": None, "max_connections": 1,
        }  # fmt: skip

    def _password(self) -> str | None:
        if self._password_file is None:
            return None
        return read_private(Path(self._password_file)).decode().strip("\r\n")


def _named(numeric: str) -> type:
    """TLS connections to this address, whose certificate is for the name."""

    class RedisTlsConnection(redis.SSLConnection):
        def _connect(self) -> Any:
            name, self.host = self.host, numeric
            try:
                sock = super(redis.SSLConnection, self)._connect()  # type: ignore[no-untyped-call]
            finally:
                self.host = name
            try:
                return self._wrap_socket_with_ssl(sock)  # type: ignore[no-untyped-call]
            except BaseException:
                sock.close()
                raise

    return RedisTlsConnection


class MasterConnection:
    """One connection that has answered, and leads to a master. Raises redis.RedisError, OSError."""

    def __init__(self, connection: "redis.connection.ConnectionInterface") -> None:
        self._connection = connection
        try:
            connection.connect()
            (role,) = self.ask([("ROLE",)])
            if isinstance(role, Exception):
                raise role
            if role[0] != "master":
                raise redis.exceptions.ReadOnlyError("it is a replica, which takes no writes")
        except BaseException:
            self.close()
            raise

    def ask(self, commands: Sequence[tuple[str | int, ...]]) -> list[Any]:
        """Answers in order, errors of Redis among them."""
        connection = self._connection
        connection.send_packed_command(connection.pack_commands(commands), check_health=False)
        return [self._answer() for _ in commands]

    def _answer(self) -> Any:
        try:
            return self._connection.read_response()
        except redis.ResponseError as error:
            return error

    def close(self) -> None:
        """Close the connection, also during a command."""
        with contextlib.suppress(Exception):
            self._connection.disconnect()


_ELSEWHERE: Final = (redis.exceptions.ReadOnlyError, redis.exceptions.BusyLoadingError)
"""Perhaps its name leads to another one by now."""
Connect = Callable[[], MasterConnection]


class Client:
    """Commands to one Redis. Raises StoreGone, and nothing else, for whatever fails."""

    def __init__(self, connect: Connect) -> None:
        self._connect = connect
        self._line: MasterConnection | None = None
        self._fresh: MasterConnection | None = None
        self._gone = "is not connected"
        self._seeker: threading.Thread | None = None
        self._ends = threading.Event()

    def open(self) -> None:
        """Connect now. Raises StoreGone."""
        try:
            self._line = self._connect()
        except Exception as error:
            raise StoreGone(said_of(error)) from error

    def close(self) -> None:
        """The end."""
        self._ends.set()
        seeker = self._seeker
        if seeker is not None:
            seeker.join(WAITS.connect + WAITS.answer)
        for line in (self._line, self._fresh):
            if line is not None:
                line.close()
        self._line = self._fresh = None

    @property
    def is_there(self) -> bool:
        """False while it is sought."""
        return self._line is not None or self._fresh is not None

    @property
    def is_taken(self) -> bool:
        """Commands can be given: the connection was made at the start, or what was made since is taken."""
        return self._line is not None

    def take(self) -> None:
        """Go on with a connection that was made since, if there is one. It may lead to another server, or to one that
        was started again: the caller must look at what is there."""
        if self._line is None and self._fresh is not None:
            self._line, self._fresh, self._seeker = self._fresh, None, None
            log.info("the Redis of the store answers again")

    def check(self) -> None:
        """Raises StoreGone until what is found is taken."""
        if self._line is None:
            raise StoreGone(self._gone)

    def call(self, *command: str | int) -> Any:
        """One command."""
        return self.many([command])[0]

    def many(self, commands: Sequence[tuple[str | int, ...]]) -> list[Any]:
        """Several at once, not as one step."""
        self.check()
        line = self._line
        assert line is not None, "it was checked"
        try:
            answers = line.ask(commands)
        except Exception as error:  # lost, or an unreadable answer: the connection is not used again
            self._lose(line, error)
            raise StoreGone(said_of(error)) from error
        for answer in answers:
            if isinstance(answer, Exception):
                if isinstance(answer, _ELSEWHERE):
                    self._lose(line, answer)
                raise StoreGone(said_of(answer)) from answer
        return answers

    def run(self, script: Script, keys: Sequence[str], *arguments: str) -> Any:
        """One script."""
        try:
            return self.call("EVALSHA", script.digest, len(keys), *keys, *arguments)
        except StoreGone as error:
            if not isinstance(error.__cause__, redis.exceptions.NoScriptError):
                raise
        return self.call("EVAL", script.text, len(keys), *keys, *arguments)  # so far it has done nothing

    def _lose(self, lost: MasterConnection, error: Exception) -> None:
        self._line, self._gone = None, said_of(error)
        lost.close()
        log.error("the Redis of the store is gone", cause=self._gone)
        self._seeker = threading.Thread(target=self._seek, name="redis", daemon=True)
        self._seeker.start()

    def _seek(self) -> None:
        while not self._ends.wait(AGAIN_SECONDS):
            try:
                line = self._connect()
            except Exception as error:
                self._gone = said_of(error)
                continue
            self._fresh = line
            return


def said_of(error: Exception) -> str:
    """The text of an error of the client, without parts that could be data of a user."""
    if isinstance(error, redis.TimeoutError):
        return "Redis: no answer in time"
    if isinstance(error, redis.AuthenticationError):
        return "Redis: user or password is refused"
    return f"Redis: {type(error).__name__}: {str(error)[:200]}"
