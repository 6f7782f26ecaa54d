"""What tests of the ledger run in processes of their own: `python -m tests.frontend.evidence.children ROLE PATH …`."""

import os
import resource
import select
import signal
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path

import trio

from frontend.evidence import schema
from frontend.evidence.ledger import LedgerUnavailable
from frontend.evidence.sqlite import SqliteLedger
from frontend.stores.database import Database
from tests.frontend.evidence.samples import NOW_MS, claim, make_event, notify, record_call


def say(text: str) -> None:
    """One line to the test."""
    print(text, flush=True)


def write_calls(path: Path, name: str, enough: str, tasks: str) -> None:
    """Record calls from that many tasks until told to stop; say when there are enough, and at the end how many."""
    written = 0

    async def write() -> None:
        ledger = await SqliteLedger.open(path)
        say("ready")
        sys.stdin.readline()

        async def task() -> None:
            nonlocal written
            while not select.select([sys.stdin], [], [], 0)[0]:
                await record_call(ledger, principal=name)
                written += 1
                if written == int(enough):
                    say("enough")

        async with trio.open_nursery() as nursery:
            for _ in range(int(tasks)):
                nursery.start_soon(task)
        await ledger.close()

    trio.run(write)
    say(str(written))


def write_until_killed(path: Path) -> None:
    """Record calls from many tasks, saying each receipt only when it is durable."""

    async def write() -> None:
        ledger = await SqliteLedger.open(path)

        async def task() -> None:
            while True:
                _, receipt, event = await record_call(ledger)
                say(f"{receipt.receipt_id} {event.event_id}")

        async with trio.open_nursery() as nursery:
            for _ in range(6):
                nursery.start_soon(task)

    trio.run(write)


def fill_disk(path: Path) -> None:
    """Record until no file may grow, then with room again; say what happened."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

    async def fill() -> None:
        ledger = await SqliteLedger.open(path)
        await ledger.append(make_event(reason="first"))
        # A reader that stays keeps the WAL, so that a probe which only comes as far as the lock would be content.
        await ledger.receipt("rcpt_none")
        say(f"healthy: {await ledger.health()}")
        _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, hard))
        written = 1
        try:
            while written < 1000:
                await ledger.append(make_event(reason="x" * 2000))
                written += 1
        except LedgerUnavailable as error:
            say(f"unavailable: {error}")
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
        say(f"healthy: {await ledger.health()}")
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        say(f"healthy: {await ledger.health()}")
        await ledger.append(make_event(reason="last"))
        report = await ledger.verify()
        say(f"intact: {report.intact}, kept exactly what was written: {report.total_events == written + 1}")
        await ledger.close()

    trio.run(fill)


def claim_and_hang(path: Path) -> None:
    """Claim what is due, say how many that are, and do nothing with it."""

    async def hang() -> None:
        ledger = await SqliteLedger.open(path)
        say(str(len(await claim(ledger))))
        await trio.sleep_forever()

    trio.run(hang)


def give_up_until_killed(path: Path) -> None:
    """Write deliveries and give them up, some at the second attempt, saying each event only when that is durable."""

    async def work() -> None:
        ledger = await SqliteLedger.open(path)

        async def task() -> None:
            while True:
                await notify(ledger, "chat")
                for delivery in await claim(ledger, limit=2):
                    if delivery.seq % 2 and delivery.attempt == 1:
                        await ledger.outbox.put_off(delivery, NOW_MS)
                    else:
                        await ledger.outbox.give_up(delivery, at=NOW_MS, error="no")
                        say(delivery.event_id)

        async with trio.open_nursery() as nursery:
            for _ in range(6):
                nursery.start_soon(task)

    trio.run(work)


def claim_on_full_disk(path: Path) -> None:
    """Use the outbox while no file may grow, then with room again; say what happened."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

    async def use() -> None:
        ledger = await SqliteLedger.open(path)
        outbox = ledger.outbox
        for _ in range(3):
            await notify(ledger, "chat")
        (held,) = await claim(ledger, limit=1)
        _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
        for task in (
            claim(ledger), outbox.delivered(held), outbox.put_off(held, NOW_MS),
            outbox.give_up(held, at=NOW_MS, error="no"), outbox.give_up_all("chat", at=NOW_MS, error="no"),
        ):  # fmt: skip
            try:
                await task
            except LedgerUnavailable:
                say("unavailable")
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        say(f"waiting: {(await outbox.waiting())['chat']}")
        say(f"attempts: {[delivery.attempt for delivery in await claim(ledger)]}")
        await outbox.delivered(held)
        say(f"waiting: {(await outbox.waiting())['chat']}")
        await ledger.close()

    trio.run(use)


def open_and_die(path: Path) -> None:
    """Open the file as a ledger, and be killed when everything is done but the commit."""

    def prepare(connection: sqlite3.Connection) -> None:
        schema.prepare(connection)
        say(f"brought to {schema.schema_version(connection)}")
        os.kill(os.getpid(), signal.SIGKILL)

    Database(path, prepare).open()


ROLES: dict[str, Callable[..., None]] = {
    role.__name__: role
    for role in (
        write_calls, write_until_killed, fill_disk, claim_and_hang, give_up_until_killed, claim_on_full_disk,
        open_and_die,
    )
}  # fmt: skip

if __name__ == "__main__":
    ROLES[sys.argv[1]](Path(sys.argv[2]), *sys.argv[3:])
