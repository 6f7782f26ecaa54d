"""What tests of the ledger run in processes of their own: `python -m tests.frontend.evidence.children ROLE PATH …`."""

import resource
import select
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import trio

from frontend.evidence.ledger import LedgerUnavailable
from frontend.evidence.sqlite import SqliteLedger
from tests.frontend.evidence.samples import make_event, record_call


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


ROLES: dict[str, Callable[..., None]] = {role.__name__: role for role in (write_calls, write_until_killed, fill_disk)}

if __name__ == "__main__":
    ROLES[sys.argv[1]](Path(sys.argv[2]), *sys.argv[3:])
