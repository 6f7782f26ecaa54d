"""A Redis that sentinels watch: the notary finds the master through them, follows a failover without a restart, and
ends every earlier lease if the new master lacks committed writes."""

import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import redis

from bench.servers import redis_program
from ipc.operations.calls import Closed, ProofRecord, UseProof
from ipc.operations.leases import ReadBudget, SignedLease
from ipc.settings import StoreSettings
from notary.backends.redis.client import Client, RedisTarget
from notary.store.contract import StoreGone
from tests.notary.backends.order import CALLS, budgeted, left
from tests.notary.backends.redis.test_faults import answering, fresh, told
from tests.notary.running import NotaryProcess, Running, settings_in
from tests.notary.samples import NOW, make_issue
from tests.support.gateway import wait_for
from tests.support.ports import closed_port, free_port
from tests.support.redis_server import RedisServer

pytestmark = [pytest.mark.large, pytest.mark.usefixtures("patient_backends")]


def offset(server: RedisServer, name: str) -> int:
    """How far a stream of writes has come on this server."""
    (line,) = [line for line in server.info("replication").splitlines() if line.startswith(f"{name}:")]
    return int(line.partition(":")[2])


class Watched:
    """A master, a replica, and three sentinels."""

    def __init__(self, folder: Path) -> None:
        self.master = RedisServer(folder / "master")
        self.replica = RedisServer(folder / "replica", "--replicaof", "127.0.0.1", str(self.master.port))
        self.sentinels = Sentinels(folder / "sentinels", self.master)
        self.settings = StoreSettings(redis_url=self.sentinels.url(self.master, self.replica))

    def replicate(self) -> None:
        """Wait until the replica has all that was written so far."""
        written = offset(self.master, "master_repl_offset")
        wait_for(lambda: offset(self.replica, "slave_repl_offset") >= written, "the replica")

    def failed_over(self) -> None:
        """Waits until every sentinel names the replica: they learn of a new master one after another."""
        wait_for(lambda: self.sentinels.masters() == {self.replica.port}, "the sentinels")

    def close(self) -> None:
        self.sentinels.close()
        self.master.close()
        self.replica.close()


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    watched = Watched(tmp_path / "watched")
    yield watched
    watched.close()


@pytest.fixture
def notary(watched: Watched, tmp_path: Path) -> Iterator[Running]:
    running = Running(tmp_path / "state", is_patient=True, store=watched.settings, dev_mode=True)
    yield running
    running.close()


def test_a_failover_is_followed_and_what_was_done_stays_done(notary: Running, watched: Watched) -> None:
    session_id = notary.front.ask(make_issue(max_calls=CALLS)).session_id
    assert isinstance(notary.front.ask(budgeted(session_id)), Closed)
    assert notary.front.ask(UseProof(ProofRecord("before", NOW))).is_fresh
    watched.replicate()
    watched.master.kill()
    assert told(notary, ReadBudget(session_id)) == "budget"
    assert isinstance(notary.front.ask(make_issue()), SignedLease), "what asks nothing of the store goes on"
    wait_for(lambda: told(notary, fresh()) == "", "the new master")
    watched.failed_over()
    assert not notary.front.ask(UseProof(ProofRecord("before", NOW))).is_fresh
    assert left(notary, session_id) == CALLS - 1
    assert notary.front.ask(fresh()).epoch == 0, "no lease has ended"


def test_a_failover_that_is_asked_for_is_followed_while_the_old_master_lives(notary: Running, watched: Watched) -> None:
    session_id = notary.front.ask(make_issue(max_calls=CALLS)).session_id
    watched.replicate()
    watched.sentinels.kill(2)
    watched.sentinels.fail_over()
    wait_for(lambda: watched.replica.ask("ROLE")[0] == "master", "the new master")
    wait_for(lambda: watched.master.ask("ROLE")[0] == "slave", "the old one as its replica")
    wait_for(lambda: told(notary, fresh()) == "", "the store")
    assert isinstance(notary.front.ask(budgeted(session_id)), Closed)
    assert watched.replica.ask("KEYS", f"*:budget:{session_id}")
    assert left(notary, session_id) == CALLS - 1


@pytest.mark.parametrize("loses", ["the last units", "everything"])
def test_a_new_master_without_the_last_writes_ends_every_earlier_lease(
    notary: Running, watched: Watched, loses: str
) -> None:
    session_id = notary.front.ask(make_issue(max_calls=CALLS)).session_id
    watched.replicate()
    watched.replica.kill()
    if loses == "everything":
        watched.replica.wipe()
    assert notary.front.ask(UseProof(ProofRecord("lost", NOW))).is_fresh
    before = notary.front.ask(budgeted(session_id))
    assert isinstance(before, Closed)
    watched.master.kill()
    watched.replica.start()
    wait_for(lambda: told(notary, fresh()) == "", "the new master")
    watched.failed_over()
    event = notary.last_event()
    assert (event["event_type"], event["principal"]) == ("AdminRevokeAll", "gateway")
    assert "lost its data" in event["reason"]
    assert notary.front.in_force[-1].epoch == event["change"]["current_epoch"] > 0, "fronts are told"


def test_a_notary_behind_its_walls_reaches_sentinels_and_master(watched: Watched, tmp_path: Path) -> None:
    process = NotaryProcess(settings_in(tmp_path / "state", store=watched.settings))
    process.ready()
    front = process.attach("front-x")
    assert front.ask(fresh()).is_fresh
    front.close()
    assert process.stop() == 0


def view(port: int, failover: int | None, address: str = "127.0.0.1") -> bytes:
    """A sentinel's answer about a master, without the failover's number if that is None."""
    number = () if failover is None else ("config-epoch", str(failover))
    words = ("name", "main", "ip", address, "port", str(port), *number)
    return f"*{len(words)}\r\n".encode() + b"".join(f"${len(word)}\r\n{word}\r\n".encode() for word in words)


def place_of(sentinels: list[int], ports: list[int]) -> RedisTarget:
    named = ",".join(f"127.0.0.1:{port}" for port in sentinels)
    return RedisTarget(StoreSettings(redis_url=f"redis+sentinel://{named}/main?ports={','.join(map(str, ports))}"))


def test_the_sentinel_that_saw_the_last_failover_is_believed(redis_server: RedisServer) -> None:
    with ExitStack() as stack:
        dead = stack.enter_context(closed_port())
        views = [view(dead, 1), view(redis_server.port, 7), view(dead, 3)]
        sentinels = [dead, *(stack.enter_context(answering(one)) for one in views)]
        place_of(sentinels, [redis_server.port, dead]).connect().close()


def test_a_sentinel_that_tells_no_number_of_a_failover_is_believed_least(redis_server: RedisServer) -> None:
    with ExitStack() as stack:
        dead = stack.enter_context(closed_port())
        views = [view(dead, None, "127.0.0.2"), view(redis_server.port, 1)]
        sentinels = [stack.enter_context(answering(one)) for one in views]
        place_of(sentinels, [redis_server.port, dead]).connect().close()


@pytest.mark.parametrize(("data", "said"), [
    (b"-ERR No such master with that name\r\n", "No such master with that name"),
    (view(7, 0, "redis-1.example"), "it tells a name: set sentinel announce-hostnames no"),
    (view(7, 0), "the master has the port 7, which is not among the ports of store.redis_url"),
    (b"+OK\r\n", "an answer that makes no sense"), (b"*1\r\n$1\r\nx\r\n", "no sentinel tells where main is"),
    (b"HTTP/1.1 400\r\n", "no sentinel tells where main is"), (b"", "no sentinel tells where main is"),
])  # fmt: skip
def test_a_master_unknown_to_all_sentinels_is_reported_in_a_sentence(
    data: bytes, said: str, redis_server: RedisServer
) -> None:
    with answering(data) as sentinel, pytest.raises(StoreGone, match=said):
        Client(place_of([sentinel], [redis_server.port]).connect).open()


NAME = "main"
DOWN_MS = 2000
"""A master that says nothing for so long is followed by a replica."""


class Sentinels:
    """The number of sentinels; two of them have to agree."""

    def __init__(self, folder: Path, master: RedisServer, number: int = 3) -> None:
        self._processes: list[subprocess.Popen[bytes]] = []
        self.ports = [free_port() for _ in range(number)]
        for port in self.ports:
            home = folder / str(port)
            home.mkdir(parents=True)
            (home / "sentinel.conf").write_text(
                f"port {port}\nbind 127.0.0.1\ndir {home}\nsentinel monitor {NAME} 127.0.0.1 {master.port} 2\n"
                f"sentinel down-after-milliseconds {NAME} {DOWN_MS}\nsentinel failover-timeout {NAME} 5000\n"
            )
            command = [redis_program(), str(home / "sentinel.conf"), "--sentinel", "--logfile", str(home / "log")]
            self._processes.append(subprocess.Popen(command))
        wait_for(lambda: all(self._knows(port, number) for port in self.ports), "the sentinels")

    def url(self, *servers: RedisServer) -> str:
        """The settings of a gateway that uses these sentinels."""
        places = ",".join(f"127.0.0.1:{port}" for port in self.ports)
        return f"redis+sentinel://{places}/{NAME}?ports={','.join(str(one.port) for one in servers)}"

    def masters(self) -> set[int]:
        """The ports that the running sentinels name as the master's; they may differ while a failover goes on."""
        running = [port for port, one in zip(self.ports, self._processes, strict=True) if one.poll() is None]
        return {int(self._ask(port, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", NAME)[1]) for port in running}

    def fail_over(self) -> None:
        """Make the replica the master now, even if the master lives."""
        wait_for(self._begins_failover, "a replica that can be the master")

    def kill(self, at: int) -> None:
        """One of them."""
        self._processes[at].kill()
        self._processes[at].wait(120)

    def close(self) -> None:
        """The end."""
        for at in range(len(self._processes)):
            self.kill(at)

    def _knows(self, port: int, number: int) -> bool:
        try:
            (told,) = self._ask(port, "SENTINEL", "MASTERS")
            return int(told["num-other-sentinels"]) == number - 1 and int(told["num-slaves"]) >= 1
        except (redis.RedisError, ValueError):
            return False

    def _begins_failover(self) -> bool:
        try:
            self._ask(self.ports[0], "SENTINEL", "FAILOVER", NAME)
        except redis.ResponseError as error:
            if "NOGOODSLAVE" not in str(error):
                raise
            return False  # it knows of the replica, and has not heard from it yet
        return True

    def _ask(self, port: int, *command: str) -> Any:
        with redis.Redis(port=port, decode_responses=True) as client:
            return client.execute_command(*command)
