"""A state folder and the notaries that a test runs on it, one after the other; a clock that the test sets."""

import os
import socket
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from contract.audit import ChainReport
from ipc.channel.blocking import BlockingChannel
from ipc.evidence.records import EventQuery
from ipc.limits import MAX_CONTROL_FRAME
from ipc.messages.notarising import (
    AttachDeliverer,
    AttachFront,
    FrontDetached,
    NotaryReady,
    NotaryToSupervisor,
    StartNotary,
    StopNotary,
    WorkerBroke,
)
from ipc.operations.evidence import FoundEvents, QueryEvents
from ipc.operations.leases import ReadEpoch
from ipc.process.clock import ClockWrong, iso
from ipc.protocols.notary import NOTARY_TO_SUPERVISOR
from ipc.settings import OperatorSettings, Settings
from notary.backends.sqlite import connect
from notary.database import OpenTransaction
from notary.reading.source import Source, opened
from notary.reading.whole import WholeWalk
from notary.remote_units import RemoteUnits
from notary.servers.table import NOT_LOOKED_UP, Places
from notary.signing.make_keys import make_keys
from notary.state import NotaryLimits
from supervisor.programs import INTERPRETER
from tests.notary.samples import NOW, make_result
from tests.support.asking import Asker, Deliverer, EventReader
from tests.support.forked import Forked, serve_as_notary
from tests.support.gateway import WAIT_SECONDS
from tests.support.ledger_file import settled
from tests.support.notary_thread import LIMITS, NotaryThread
from tests.support.played_workers import Workers

if TYPE_CHECKING:
    from notary.backends.postgres.place import PostgresTimeouts
    from notary.backends.redis.client import RedisTimeouts

ROOT = Path(__file__).resolve().parents[2]
UNDISTURBED = replace(LIMITS, round_seconds=3600.0, checkpoint_seconds=3600.0)
"""The notary writes nothing of its own accord: a second after a first start it follows the keys whose sets that start
has published, which is a unit like any other one, and once a second it signs a checkpoint of what has grown."""


class HandClock:
    """A clock that shows what the test says; `wrong` set: it tells no time."""

    def __init__(self) -> None:
        self.time = NOW
        self.wrong = ""

    def now(self) -> float:
        """Unix seconds. Raises ClockWrong."""
        if self.wrong:
            raise ClockWrong(self.wrong)
        return self.time

    def follow(self, floor: float) -> None:
        """The test knows better."""

    def iso(self, t: float | None = None) -> str:
        """As text."""
        return iso(self.now() if t is None else t)


def settings_in(folder: Path, **changes: Any) -> Settings:
    """Settings of a notary whose state and keys lie in this folder; keys are made where they are missing."""
    make_keys(folder)
    keys = folder / "keys"
    return msgspec.structs.replace(
        Settings(
            str(folder), "http://localhost", lease_signing_key_path=str(keys / "lease.pem"),
            grant_signing_key_path=str(keys / "grant.pem"), receipt_signing_key_path=str(keys / "receipt.pem"),
            receipt_keys_jwks_path=str(folder / "receipt-keys.jwks.json"), operators=(OperatorSettings("alice"),),
        ),
        **changes,
    )  # fmt: skip


def stored(path: Path, statement: str = "SELECT bytes FROM events ORDER BY seq", *values: Any) -> list[Any]:
    """Rows of a ledger's file and its journal, read by a stranger; a single column comes without its row."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as file, closing(settled(file)) as connection:
        return [row[0] if len(row) == 1 else row for row in connection.execute(statement, values)]


def execute(path: Path, statement: str, *values: Any) -> None:
    """A stranger changes the file of a ledger."""
    with closing(sqlite3.connect(path, isolation_level=None, timeout=60)) as connection:
        connection.execute(statement, values)


def patient_waits() -> "tuple[RedisTimeouts, PostgresTimeouts]":
    """For tests that are not about what takes too long."""
    from notary.backends.postgres.place import PostgresTimeouts
    from notary.backends.redis.client import RedisTimeouts

    seconds = int(WAIT_SECONDS)
    return (
        RedisTimeouts(connect=WAIT_SECONDS, answer=WAIT_SECONDS),
        PostgresTimeouts(connect=seconds, unit=2 * seconds, lock=seconds, idle=seconds),
    )


def patient_places(settings: Settings) -> Places:
    """Where the backends are, waited for as long as it takes."""
    from notary.backends.postgres import place
    from notary.backends.redis import client

    redis_waits, postgres_waits = patient_waits()
    found: dict[str, object] = {}
    if settings.store.redis_url is not None:
        found["redis"] = client.RedisTarget(settings.store, redis_waits)
    if settings.ledger.url is not None:
        found["postgresql"] = place.PostgresTarget(settings.ledger, postgres_waits)
    return found


class Running:
    """The notary of one folder, in a thread. Started again, it is another one on what the first has left."""

    def __init__(
        self, folder: Path, *, limits: NotaryLimits = LIMITS, is_patient: bool = False, **settings: Any
    ) -> None:
        """`is_patient`: with Redis and PostgreSQL, whose waits are no part of what is tested."""
        self.folder = folder
        self.is_patient = is_patient
        self.limits = limits
        self.path = folder / "ledger.sqlite3"
        self.clock = HandClock()
        self.settings = settings_in(folder, **settings)
        self._thread: NotaryThread | None = None
        self.lives = 0
        self.workers = Workers(make_result)
        self._askers: list[Asker] = []
        self._deliverer: Deliverer | None = None
        self.start()

    def start(self) -> Asker:
        """Start one; its front is `front`, another one than before, as fronts that start again are."""
        places = patient_places(self.settings) if self.is_patient else NOT_LOOKED_UP
        self._thread = NotaryThread(self.settings, self.clock, limits=self.limits, places=places)
        self.workers.tie_all(self.thread.tell)
        self.lives += 1
        self.front = self.attach(f"front-{self.lives}")
        return self.front

    @property
    def thread(self) -> NotaryThread:
        """That of this life."""
        assert self._thread is not None
        return self._thread

    def attach(self, front_id: str) -> Asker:
        """One more front."""
        asker = Asker(self.thread.attach(front_id), self.path, front_id, self.workers, lambda: self.deliverer)
        self._askers.append(asker)
        return asker

    @property
    def remote(self) -> RemoteUnits:
        """The part of this life's notary that asks a Redis."""
        remote = self.thread._service._remote
        assert remote is not None
        return remote

    def look_no_more(self) -> None:
        """It looks at its Redis by itself no more, and no look is under way."""
        for _ in range(2):  # one that was just beginning has set the time of the next one
            self.remote._poll_at = inf
            self.front.ask(ReadEpoch())

    @property
    def deliverer(self) -> Deliverer:
        """The deliverer of this life, attached when it is wanted first."""
        if self._deliverer is None:
            self._deliverer = Deliverer(self.thread.attach_deliverer(f"deliverer-{self.lives}"), self.path)
            self._askers.append(self._deliverer)
        return self._deliverer

    def event_reader(self) -> EventReader:
        """An exporter, which follows the one before."""
        reader = EventReader(self.thread.attach_exporter(), self.path)
        self._askers.append(reader)
        return reader

    def stop(self) -> None:
        """End the notary, whether anybody has read its answers or not."""
        if self._thread is not None:
            self._thread.stop()
            self._thread = None
        for asker in self._askers:
            asker.close()
        self._askers.clear()
        self._deliverer = None

    def close(self) -> None:
        """The end of notary and workers."""
        self.stop()
        self.workers.close()

    def restart(self) -> Asker:
        """Start a new notary on the same folder, with the same workers."""
        self.stop()
        return self.start()

    def followed(self, front_id: str, asked: dict[int, Any]) -> Asker:
        """The next notary is asked by a front that lived on, under the numbers that it used before."""
        self.restart()
        return self.asked_again(front_id, asked)

    def asked_again(self, front_id: str, asked: dict[int, Any]) -> Asker:
        """The same without a start."""
        asker = self.attach(front_id)
        asker.resend(asked)
        return asker

    def stored(self, statement: str, *values: Any) -> list[Any]:
        """Rows of the file, read by a stranger."""
        return stored(self.path, statement, *values)

    @contextmanager
    def stranger(self) -> Iterator[sqlite3.Connection]:
        """A writing connection that is not the notary's."""
        with closing(sqlite3.connect(self.path, isolation_level=None, timeout=60)) as connection:
            yield connection

    def execute(self, statement: str, *values: Any) -> None:
        """A stranger changes the file."""
        execute(self.path, statement, *values)

    def events(self) -> list[dict[str, Any]]:
        """Every event, oldest first."""
        return [msgspec.json.decode(event) for event in stored(self.path)]

    def last_event(self) -> dict[str, Any]:
        """The newest event."""
        return self.events()[-1]


def walk(front: Asker) -> ChainReport:
    """Along the whole chain, as a reader goes."""
    with closing(connect(front.path, writes=False)) as connection:
        return _walked(connection)


def _walked(connection: OpenTransaction) -> ChainReport:
    """Each step is a transaction, as of any reader: a notary may write meanwhile."""
    progress, goes_on = WholeWalk(), True
    while goes_on:
        connection.execute("BEGIN")
        goes_on = progress.step(connection)
        connection.execute("ROLLBACK")
    return progress.report()


def query(front: Asker, **given: Any) -> list[bytes]:
    """Events as stored, newest first."""
    found: FoundEvents = front.ask(QueryEvents(EventQuery(**given)))
    return found.events


class NotaryProcess:
    """A notary as the supervisor starts it: for what only a process can show."""

    def __init__(self, settings: Settings, workers: Workers | None = None, **popen: Any) -> None:
        """`workers` are those that live already."""
        ours, theirs = socket.socketpair()
        with theirs:
            self.process = self._begin(theirs, **popen)
        ours.settimeout(60)
        self._control: BlockingChannel[NotaryReady | FrontDetached | WorkerBroke] = BlockingChannel(
            ours, NotaryToSupervisor, table=NOTARY_TO_SUPERVISOR, cap_in=MAX_CONTROL_FRAME,
            cap_out=MAX_CONTROL_FRAME,
        )  # fmt: skip
        self._path = Path(settings.state_dir) / "ledger.sqlite3"
        self._control.send(StartNotary(settings))
        self.workers = workers or Workers(make_result)
        self._keeps_workers = workers is None
        self.workers.tie_all(self._control.send)

    def _begin(self, control: socket.socket, **popen: Any) -> Any:
        number = control.fileno()
        command = [*INTERPRETER, "notary.main", "--control-fd", str(number), "--parent", str(os.getpid())]
        return subprocess.Popen(command, cwd=ROOT, pass_fds=(number,), text=True, **popen)

    def ready(self) -> None:
        """Wait until it serves."""
        self._control.receive()

    def attach(self, front_id: str) -> Asker:
        """One more front."""
        ours, theirs = socket.socketpair()
        with theirs:
            self._control.send(AttachFront(front_id), (theirs.fileno(),))
        return Asker(ours, self._path, front_id, self.workers, lambda: self.attach_deliverer("deliverer-a"))

    def attach_deliverer(self, deliverer_id: str) -> Deliverer:
        """The deliverer; one that was attached before has lost its channel."""
        ours, theirs = socket.socketpair()
        with theirs:
            self._control.send(AttachDeliverer(deliverer_id), (theirs.fileno(),))
        return Deliverer(ours, self._path)

    def stop(self) -> int:
        """Have it finish; its exit code."""
        self._control.send(StopNotary())
        return self.end()

    def kill(self) -> None:
        """SIGKILL."""
        self.process.kill()
        self.end()

    def end(self) -> int:
        """Wait for its end."""
        code: int = self.process.wait(60)
        self._control.close()
        if self._keeps_workers:
            self.workers.close()
        for stream in (self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()
        return code


class ForkedNotary(NotaryProcess):
    """For tests that need many: without the start of an interpreter. The supervisor is not its parent."""

    def _begin(self, control: socket.socket, **_: Any) -> Forked:
        return Forked(serve_as_notary, control)


def walk_of(notary: Running) -> ChainReport:
    """The same wherever the ledger is, as its notary sees it between two units."""
    with opened(Source(notary.settings.ledger.url or str(notary.path))) as connection:
        return _walked(connection)
