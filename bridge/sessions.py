"""All sessions of a bridge: opened by a client's first message, each with a server of its own.

One server is kept ready, so that a client does not wait for its start (docs/decisions/clients.md has the seconds).
Guarantees a bound on sessions and so on servers, and that an id is a secret of 256 bits that the log never shows.
"""

import itertools
import secrets
from collections.abc import Sequence
from typing import Final

import trio

from bridge.child import ServerChild
from bridge.session import ANSWER_SECONDS, IDLE_SECONDS, BridgeSession
from frontend.telemetry.logs import log

MAX_SESSIONS: Final = 64
ABANDONED_SECONDS: Final = 5.0
"""A session that is idle for so long makes room where too many are open."""


class NoServer(Exception):
    """No session can be opened: too many are open, or the command can't be started. The text says which."""


class BridgeSessions:
    """Sessions by their ids. Their tasks run in `nursery`."""

    def __init__(
        self, command: Sequence[str], nursery: trio.Nursery, *, answer_seconds: float = ANSWER_SECONDS,
        idle_seconds: float = IDLE_SECONDS, most: int = MAX_SESSIONS,
    ) -> None:  # fmt: skip
        self._command = command
        self._nursery = nursery
        self._answer_seconds = answer_seconds
        self._idle_seconds = idle_seconds
        self._most = most
        self._numbers = itertools.count(1)
        self._sessions: dict[str, BridgeSession] = {}
        self._spare: ServerChild | None = None

    def open(self) -> tuple[str, BridgeSession]:
        """Start a server, and return its session with the id. Raises NoServer."""
        if len(self._sessions) >= self._most:
            self._end_idlest()
            log.warning("session refused: too many are open", sessions=len(self._sessions))
            raise NoServer("too many sessions are open")
        child = self._spare if self._spare is not None and not self._spare.has_ended else self._started()
        if child is None:
            raise NoServer("the server can't be started")
        if child is not self._spare:
            self._end_spare()
        self._spare = self._started()
        session = BridgeSession(
            next(self._numbers), child, answer_seconds=self._answer_seconds, idle_seconds=self._idle_seconds
        )
        identifier = secrets.token_urlsafe(32)
        self._sessions[identifier] = session
        log.info("session opened", session=session.number, pid=child.pid)
        self._nursery.start_soon(self._run, identifier, session)
        return identifier, session

    def prepare(self) -> None:
        """Start the server that the first session gets."""
        self._spare = self._started()

    def find(self, identifier: str) -> BridgeSession | None:
        """The session with this id, unless it has ended."""
        return self._sessions.get(identifier)

    def end(self, identifier: str, reason: str) -> None:
        """End a session, if there is one with this id."""
        if (session := self._sessions.get(identifier)) is not None:
            session.end(reason)

    def end_all(self, reason: str) -> None:
        """End every session."""
        self._end_spare()
        for session in self._sessions.values():
            session.end(reason)

    def _end_idlest(self) -> None:
        """A client that ended without a word keeps no other out: the gateway's calls have a session each."""
        idlest = max(self._sessions.values(), key=lambda one: one.idle_seconds)
        if idlest.idle_seconds >= ABANDONED_SECONDS:
            idlest.end("too many sessions are open, and it was idle for longest")

    def _started(self) -> ServerChild | None:
        try:
            return ServerChild(self._command)
        except OSError as error:
            log.error("the command can't be started", program=self._command[0], error=error.strerror)
            return None

    def _end_spare(self) -> None:
        if self._spare is not None:
            self._nursery.start_soon(self._spare.end)
            self._spare = None

    async def _run(self, identifier: str, session: BridgeSession) -> None:
        try:
            await session.run()
        finally:
            del self._sessions[identifier]
