"""What tests of the stores run in processes of their own: `python -m tests.frontend.stores.children ROLE PATH …`."""

import os
import resource
import select
import signal
import sqlite3
import sys
import time
from collections.abc import Callable
from pathlib import Path

import trio

from frontend.stores.database import Database, DatabaseGone
from frontend.stores.interface import ApprovalRecord, StoreUnavailable
from frontend.stores.sqlite import SqliteStore
from frontend.stores.turns import Turn

NOBODY = 65534


def say(text: str) -> None:
    """One line to the test."""
    print(text, flush=True)


def hold_turn(path: Path) -> None:
    """Take a turn and keep it until killed."""
    with Turn(path):
        say("held")
        sys.stdin.read()


def take_turns(path: Path, enough: str) -> None:
    """Take one turn after the other without a pause, each with a write to the disk, until told to stop.

    Says when it has had enough, and at the end when each turn was asked for and when it began.
    """
    turn, moments = Turn(path), list[str]()
    own = os.open(path.with_name(f"own-{os.getpid()}"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    say("ready")
    sys.stdin.readline()
    while not select.select([sys.stdin], [], [], 0)[0]:
        asked = time.monotonic()
        with turn:
            moments.append(f"{asked:.6f} {time.monotonic():.6f}")
            os.pwrite(own, os.urandom(4096), 0)
            os.fdatasync(own)
        if len(moments) == int(enough):
            say("enough")
    say(" ".join(moments))


def table(connection: sqlite3.Connection) -> None:
    """The schema of these tests."""
    connection.execute("CREATE TABLE IF NOT EXISTS things (name TEXT PRIMARY KEY, body BLOB)")


def fill_disk(path: Path) -> None:
    """Write until no file may grow, then with room again; say what happened."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    database = Database(path, table)
    database.open()

    def write(name: str) -> str:
        try:
            with database.unit() as connection:
                connection.execute("INSERT INTO things VALUES (?, ?)", (name, os.urandom(40_000)))
        except DatabaseGone as error:
            return f"gone: {error}"
        return "written"

    say(write("first"))
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, hard))
    outcomes = [write(f"n{number}") for number in range(20)]
    say(next(outcome for outcome in outcomes if outcome != "written"))
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    say(write("last"))
    with database.unit(writes=False) as connection:
        names = {name for (name,) in connection.execute("SELECT name FROM things")}
    expected = {"first", "last"} | {f"n{number}" for number, outcome in enumerate(outcomes) if outcome == "written"}
    say(f"kept exactly what was written: {names == expected}")


def commit_on_full_disk(path: Path) -> None:
    """Ten visits that share a commit which fails, and the same again with room; say how they ended."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

    async def use() -> None:
        store = await SqliteStore.open(path)
        outcomes: list[str] = []

        async def visit(number: int) -> None:
            try:
                outcomes.append(f"fresh {(await store.check_in(f'p{number}', 1e10, 0.0)).is_fresh}")
            except StoreUnavailable:
                outcomes.append("unavailable")

        _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        for limit in (4096, hard, hard):
            outcomes.clear()
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
            async with trio.open_nursery() as nursery:
                for number in range(10):
                    nursery.start_soon(visit, number)
            say(", ".join(sorted(set(outcomes))))
        await store.close()

    trio.run(use)


def write_read_only(path: Path) -> None:
    """Open as somebody who may only read; say what happens."""
    if os.geteuid() == 0:
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    try:
        Database(path, table).open()
        say("opened")
    except DatabaseGone as error:
        say(f"gone: {error}")


def use_store(path: Path, name: str) -> None:
    """Use every part of a store, saying each thing only when it is answered; until killed."""

    async def use() -> None:
        store = await SqliteStore.open(path)
        await store.budget_open(name, 1_000_000, 1e10)
        number = 0
        while True:
            number += 1
            proof = f"{name}-{number}"
            if (await store.check_in(proof, 1e10, 0.0)).is_fresh:
                say(f"proof {proof}")
            say(f"debit {name} {(await store.budget_debit(name)).remaining}")
            if number % 5 == 0:
                say(f"epoch {(await store.raise_epoch())[1]}")
                record = ApprovalRecord(proof, name, "act", proof, "pending", float(number), 1e10, "{}")
                if (await store.approval_hold(record, 1_000_000, 0.0)).kind == "stored":
                    say(f"approval {proof}")

    trio.run(use)


ROLES: dict[str, Callable[..., None]] = {
    role.__name__: role for role in (hold_turn, take_turns, fill_disk, commit_on_full_disk, write_read_only, use_store)
}

if __name__ == "__main__":
    ROLES[sys.argv[1]](Path(sys.argv[2]), *sys.argv[3:])
