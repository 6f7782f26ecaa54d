"""One connection to a PostgreSQL that gateways share: units one after the other, every wait with a deadline.

Guarantees that a unit which writes has the ledger's lock before it reads anything, so that gateways take turns; that a
unit whose COMMIT was not answered counts as failed unless the server itself says that it was committed; that a server
which is gone costs a unit nothing after the first, while a thread tries to connect again; and that one which lacks what
was committed is not gone on with.
"""

import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import psycopg

from ipc.process.logs import log
from ipc.process.private_files import PrivateFileError
from notary.backends.postgres.place import PostgresConnection, PostgresTarget, said_of
from notary.backends.postgres.statements import Statements
from notary.database import DatabaseGone, NotStorable, OpenTransaction

AGAIN_SECONDS: Final = 0.25
"""Between two attempts to connect again."""
TAKE_TURN: Final = "UPDATE turn SET number = number + 1 RETURNING number, CAST(pg_current_xact_id() AS text)"
_READ_TURN: Final = "SELECT number FROM turn"
USERS_LOCK: Final = 4827364520
"""The advisory lock that the session of each gateway shares; who changes the schema needs it alone."""
_USE: Final = f"SELECT pg_advisory_lock_shared({USERS_LOCK})"
_READ_SCHEMA: Final = "SELECT value FROM meta WHERE key = 'schema'"
_BEGIN_READING: Final = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_ELSEWHERE: Final = (psycopg.errors.ReadOnlySqlTransaction, psycopg.errors.InvalidAuthorizationSpecification)
"""Perhaps its name leads to another server by now."""
Judge = Callable[[PostgresConnection], None]
Check = Callable[[OpenTransaction], str | None]


class PostgresDatabase:
    """See Database."""

    is_shared = True
    has_old_frames = False
    has_long_wal = False

    def __init__(self, place: PostgresTarget, own: Mapping[str, str], judge: Judge, gateway_id: str) -> None:
        """`own`: see Statements. `judge` raises DatabaseGone for a server that will not do."""
        self.gateway_id = gateway_id
        self.is_unchanged = True
        self.check: Check | None = None
        """Returns why a server that was gone is not the same; None if it is."""
        self._place, self._own, self._judge = place, own, judge
        self._line: PostgresConnection | None = None
        self._fresh: PostgresConnection | None = None
        self._schema: str | None = None
        """The version of the tables that this gateway writes."""
        self._turn = 0
        """The turn of the last unit that this gateway has written."""
        self._gone = "is not connected"
        self._seeker: threading.Thread | None = None
        self._ends = threading.Event()

    def open(self, prepare: Callable[[OpenTransaction], None]) -> None:
        """Connect now, and bring the tables to this version. Raises DatabaseGone."""
        try:
            line = self._place.connect()
            try:
                self._judge(line)
                line.hurry(60.0)  # another gateway may be doing the same, and it may take its time
                with line.transaction():
                    line.execute("SET LOCAL statement_timeout = 0")
                    line.execute("SET LOCAL lock_timeout = 0")
                    prepare(Statements(line, self._own))
                    self._schema = self._used(line)
            except BaseException:
                line.close()
                raise
        except (psycopg.Error, OSError, PrivateFileError) as error:
            raise DatabaseGone(_sentence(error)) from error
        self._line = line

    @contextlib.contextmanager
    def unit(self, *, writes: bool = True, is_durable: bool = True) -> Iterator[OpenTransaction]:  # noqa: ARG002 - all are
        """See Database. Raises NotStorable for a value that no PostgreSQL takes."""
        line = self._usable()
        line.hurry(self._place.waits.unit)
        transaction, turn = "", self._turn
        is_ending = False
        try:
            with line.pipeline():
                line.execute("BEGIN" if writes else _BEGIN_READING)
                turn, transaction = self._begun(line, writes=writes)
                yield Statements(line, self._own)
                is_ending = True
                ended = line.execute("COMMIT")
            if ended.statusmessage != "COMMIT":
                raise psycopg.OperationalError("the transaction was not committed")
        except (psycopg.Error, OSError) as error:
            is_lost = self._end(line, error)
            if not (is_ending and writes and is_lost and self._was_committed(transaction)):
                if isinstance(error, psycopg.DataError):
                    raise NotStorable(said_of(error)) from error
                if not is_lost:
                    error.add_note("ledger")  # an operation's, perhaps: each by itself, then
                raise DatabaseGone(_sentence(error)) from error
            log.warning("a unit was committed, and its answer lost")
        except BaseException as error:
            self._end(line, error)
            raise
        if writes:
            self._turn = turn

    def follow(self) -> None:
        """See Database."""
        self.is_unchanged = True

    def cut_wal(self) -> bool:
        """See Database: the server does it."""
        return True

    def tend(self) -> None:
        """See Database: the server does it."""

    def close(self) -> None:
        """See Database."""
        self._ends.set()
        if self._seeker is not None:
            self._seeker.join(2 * self._place.waits.unit)
        for line in (self._line, self._fresh):
            if line is not None:
                line.close()
        self._line = self._fresh = None

    def _begun(self, line: PostgresConnection, *, writes: bool) -> tuple[int, str]:
        row = line.execute(TAKE_TURN if writes else _READ_TURN).fetchone()
        if row is None:
            raise psycopg.OperationalError("the ledger's row of turns is gone")
        self.is_unchanged = self.is_unchanged and row[0] == self._turn + (1 if writes else 0)
        return row[0], row[1] if writes else ""

    def _end(self, line: PostgresConnection, error: BaseException) -> bool:
        """Roll back. True when the connection can't be used again."""
        is_useless = isinstance(error, (psycopg.errors._WaitTimeout, OSError, *_ELSEWHERE)) or line.closed
        if not is_useless:
            try:
                if line.info.transaction_status is not psycopg.pq.TransactionStatus.IDLE:
                    line.execute("ROLLBACK")
                return False
            except (psycopg.Error, OSError) as another:
                error = another
        self._lose(error)
        return True

    def _was_committed(self, transaction: str) -> bool:
        """Ask the server itself, once: a COMMIT that was not answered may have been done."""
        try:
            line = self._place.connect()
        except (psycopg.Error, OSError, PrivateFileError):
            return False
        try:
            line.hurry(self._place.waits.unit)
            # Behind its lock it has ended, one way or the other.
            line.execute("BEGIN")
            line.execute("SELECT number FROM turn FOR UPDATE")
            status = line.execute("SELECT pg_xact_status(CAST(%s AS xid8))", [transaction]).fetchone()
            return status is not None and status[0] == "committed"
        except (psycopg.Error, OSError):
            return False
        finally:
            line.close()

    def _usable(self) -> PostgresConnection:
        if self._line is None:
            if self._fresh is None:
                raise DatabaseGone(self._gone)
            self._line, self._fresh, self._seeker = self._fresh, None, None
            log.info("the PostgreSQL of the ledger answers again")
        return self._line

    def _lose(self, error: BaseException) -> None:
        if self._line is None:
            return
        lost, self._line, self._gone = self._line, None, _sentence(error)
        with contextlib.suppress(Exception):
            lost.close()
        log.error("the PostgreSQL of the ledger is gone", cause=self._gone)
        self._seeker = threading.Thread(target=self._seek, name="postgres", daemon=True)
        self._seeker.start()

    def _seek(self) -> None:
        while not self._ends.wait(AGAIN_SECONDS):
            try:
                line = self._place.connect()
            except Exception as error:
                self._gone = _sentence(error)
                continue
            try:
                self._judge(line)
                if (problem := self._problem(line)) is None:
                    self._fresh = line
                    return
                if problem != self._gone:
                    log.error("the PostgreSQL of the ledger is not as it was", cause=problem)
                self._gone = problem
            except Exception as error:
                self._gone = _sentence(error)
            line.close()

    def _used(self, line: PostgresConnection) -> str | None:
        """Share the ledger until this line ends; the version of its tables, which no gateway changes until then."""
        line.execute(_USE)
        row = line.execute(_READ_SCHEMA).fetchone()
        return None if row is None else str(row[0])

    def _problem(self, line: PostgresConnection) -> str | None:
        """SECURITY: a server that was put back, or a copy that lags behind, lacks evidence that was answered for;
        tables of another version might not keep all that this one writes."""
        line.hurry(self._place.waits.unit)
        with line.transaction():
            if (schema := self._used(line)) != self._schema:
                return f"PostgreSQL: its schema is {schema} now, this gateway writes {self._schema}: stop this gateway"
            row = line.execute(_READ_TURN).fetchone()
            if row is None or row[0] < self._turn:
                return "PostgreSQL: it lacks units that were committed: it was put back, or is a copy that lags behind"
            return None if self.check is None else self.check(Statements(line, self._own))


def _sentence(error: Any) -> str:
    return str(error) if isinstance(error, DatabaseGone | PrivateFileError) else said_of(error)
