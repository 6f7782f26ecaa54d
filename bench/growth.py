"""Ledgers of a given length, grown through the ledger's own code: what a year of service leaves behind."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import trio

from frontend.clock import SystemClock
from frontend.evidence.events import AuditEvent
from frontend.evidence.sqlite import SqliteLedger
from frontend.identifiers import new

AT_ONCE = 500


async def _append(ledger: SqliteLedger, clock: SystemClock, number: int) -> None:
    await ledger.append(
        AuditEvent(
            event_id=new("evt_"), event_type="ActionCall", timestamp=clock.iso(), trace_id=new("trc_"),
            principal=f"agent:{number % 50}", session_id=f"ses_{number % 500}", lease_jti=f"lea_{number % 500}",
            identity_method="peercred", action_id=f"action_{number % 20}", action_version="1.0.0", risk_level="low",
            trust_verdict="digest_ok", decision="allow", request_hash="sha256:" + "0" * 64, policy_version="1",
            policy_rule="allow", receipt_id=new("rcpt_"), grant_id=new("grant_"), intent_id=new("intent_"),
            verification_outcome="verified", runtime={"duration_ms": 1, "exit_code": 0, "fuel_consumed": 12345},
        )
    )  # fmt: skip


async def _grow(path: Path, events: int) -> None:
    ledger = await SqliteLedger.open(path)
    clock = SystemClock(0)
    try:
        for start in range(0, events, AT_ONCE):
            async with trio.open_nursery() as nursery:
                for number in range(start, min(start + AT_ONCE, events)):
                    nursery.start_soon(_append, ledger, clock, number)
    finally:
        await ledger.close()


@contextmanager
def prepared_ledger(events: int) -> Iterator[Path]:
    """A folder whose `state` holds a ledger of this many events."""
    with tempfile.TemporaryDirectory(prefix="gateway-bench-") as folder:
        state = Path(folder) / "state"
        state.mkdir(mode=0o700)
        trio.run(_grow, state / "ledger.sqlite3", events)
        yield Path(folder)
