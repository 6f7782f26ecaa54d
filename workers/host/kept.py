"""Connections of one worker to upstreams, kept after an answer for another call of the same kind.

Guarantees that a connection serves one call at a time; that its calls have the same action, principal, egress, secrets
and upstream; that it is given out only while nothing has come on it; and that time and number of those that wait are
bounded. Holds no secret: it compares hashes under a key that this worker has made.
"""

import hashlib
import os
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import msgspec

from ipc.limits import MAX_AHEAD
from ipc.plan import Plan
from workers.host.connection import is_quiet
from workers.host.layered import Stream
from workers.host.urls import Target
from workers.host.wire import Headers

MAX_KEPT = MAX_AHEAD
"""Connections that wait, in one worker: as many as calls may use besides (`open_files` of workers/sandbox/profiles.py
has room for both)."""
IDLE_SECONDS = 4.0
"""Upstreams end a connection that waits after five seconds or later."""
AGE_SECONDS = 30.0
"""Since a connection was made. An address that its name no longer has is used for so long."""


@dataclass(eq=False, slots=True)
class KeptConnection:
    """A stream to an upstream, for calls that have this key. Times are of the clock of KeptConnections."""

    key: bytes
    stream: Stream
    opened_at: float
    kept_at: float = 0.0
    until: float = 0.0
    is_used: bool = False
    """True once it has served a call."""


class KeptConnections:
    """One a worker, made after the fork. Threads may share it."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock` is in seconds, and never goes back."""
        self._clock = clock
        self._secret = os.urandom(32)
        self._lock = threading.Lock()
        self._waiting: list[KeptConnection] = []

    def key(self, plan: Plan, target: Target, secrets: Mapping[str, str], headers: Headers) -> bytes:
        """The same for two requests that may go over one connection.

        SECURITY: principals share no connection: an upstream that reads a request of one as two would give another the
        second answer. The header `authorization` counts because some schemes authenticate the connection.
        """
        authorized = [value for name, value in headers if name == "authorization"]
        common = (
            plan.action_id, plan.action_version, plan.principal, plan.egress, target.scheme, target.host, target.port,
            sorted(secrets.items()), authorized,
        )  # fmt: skip
        return hashlib.blake2b(msgspec.msgpack.encode(common), key=self._secret, digest_size=32).digest()

    def opened(self, key: bytes, stream: Stream) -> KeptConnection:
        """A connection that was just made."""
        return KeptConnection(key, stream, self._clock())

    def take(self, key: bytes, idle_seconds: float) -> KeptConnection | None:
        """A connection with this key that waits no longer than so many seconds, and is still quiet; None: there is
        none. It is the caller's until it is kept again or closed."""
        while (found := self._popped(key, idle_seconds)) is not None:
            if is_quiet(found.stream):
                return found
            found.stream.close()
        return None

    def keep(self, connection: KeptConnection, seconds: float) -> None:
        """Let a connection wait for another call, at most so many seconds; the one that waits longest makes room."""
        now = self._clock()
        connection.is_used = True
        connection.kept_at = now
        connection.until = min(now + min(IDLE_SECONDS, seconds), connection.opened_at + AGE_SECONDS)
        with self._lock:
            self._waiting.append(connection)
            self._close(self._waiting[:-MAX_KEPT])

    def close_old(self) -> None:
        """Close those whose time is over."""
        now = self._clock()
        with self._lock:
            self._close([one for one in self._waiting if now >= one.until])

    def close(self) -> None:
        """Close all that wait."""
        with self._lock:
            self._close(list(self._waiting))

    def _popped(self, key: bytes, idle_seconds: float) -> KeptConnection | None:
        """The one that has waited shortest: the likeliest to be alive."""
        self.close_old()
        now = self._clock()
        with self._lock:
            for one in reversed(self._waiting):
                if one.key == key and now - one.kept_at <= idle_seconds:
                    self._waiting.remove(one)
                    return one
        return None

    def _close(self, connections: list[KeptConnection]) -> None:
        for one in connections:
            self._waiting.remove(one)
            one.stream.close()
