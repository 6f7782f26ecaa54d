"""A front's requests to a notary, valid by default and false where a test chooses, and the checks afterwards."""

import sqlite3
import time
from contextlib import closing
from typing import Any

import msgspec

from ipc.backends.store import ApprovalRecord, Budget
from ipc.evidence.events import AuditEvent
from ipc.evidence.records import EventQuery
from ipc.operations.calls import Closed, GrantTerms, Open, ProofRecord, Refusal
from ipc.operations.evidence import FoundEvents, QueryEvents, WriteEvent
from ipc.operations.holds import Hold, HoldInForce, MoveHold
from ipc.operations.leases import Issue, ReadBudget, SignedLease
from ipc.operations.operation import Operation
from ipc.process.clock import parse_iso
from ipc.texts.identifiers import new
from tests.support.ledger_file import settled
from tests.support.played_supervisor_of_notary import (
    PlayedFront,
    PlayedSupervisor,
)
from tests.support.played_workers import sound_result

DIGEST = "sha256:" + "d" * 64
REFUSED = "an operation is refused"


# ------------------------------------------------------------------ what a sound front would ask


def call_event(**given: Any) -> AuditEvent:
    fields = {
        "event_type": "ActionCall", "trace_id": new("trc_"), "principal": "uid:1000", "session_id": "ses_1",
        "action_id": "text_digest", "provider_module_digest": DIGEST, "request_hash": DIGEST,
    }  # fmt: skip
    return AuditEvent(**fields | given)


def terms(**given: Any) -> GrantTerms:
    fields: dict[str, Any] = {
        "plan_hash": DIGEST, "module_digest": DIGEST, "epoch": 0, "verifier_kind": "none", "max_response_bytes": 1000,
        "fuel": 1_000_000, "memory_mb": 64, "timeout_seconds": 30.0, "max_io_calls": 8,
    }  # fmt: skip
    return GrantTerms(**fields | given)


def make_proof() -> ProofRecord:
    """A proof that was made now and never used."""
    return ProofRecord(new("proof_"), time.time())


def an_open(**given: Any) -> Open:
    fields: dict[str, Any] = {
        "intent_id": new("intent_"), "event": call_event(), "terms": terms(), "worker_id": "",
        "proof": make_proof(),
    }  # fmt: skip
    return Open(**fields | given)


def called(front: PlayedFront, **given: Any) -> Closed:
    """One whole call that goes well."""
    return front.end(opened(front, **given), sound_result())


def opened(front: PlayedFront, **given: Any) -> Open:
    """A call that was begun, and ends when the test has its worker tell so."""
    asked = an_open(**given)
    front.begin(asked)
    return asked


def with_budget(front: PlayedFront, calls: int) -> str:
    """A session of its own with so many calls."""
    event = AuditEvent(event_type="LeaseIssued", trace_id=new("trc_"), principal="p", decision="allow")
    asked = Issue("p", None, ("tools:call",), calls, "thumbprint", "none", event)
    issued: SignedLease = front.value(asked, SignedLease)
    return issued.session_id


def left(front: PlayedFront, session_id: str) -> int:
    budget: Budget = front.value(ReadBudget(session_id), Budget)
    return budget.remaining


def a_hold(approval_id: str = "", session_id: str = "ses_1", **given: Any) -> Hold:
    event = call_event(session_id=session_id)
    plan = f'{{"principal":"{event.principal}"}}'
    approval = ApprovalRecord(
        approval_id or new("apr_"), session_id, "text_digest", DIGEST, "pending", 0.0, 300.0,
        f'{{"plan_hash":"{DIGEST}","has_budget":true,"plan":{plan}}}', principal=event.principal or "",
    )  # fmt: skip
    fields: dict[str, Any] = {"event": event, "approval": approval, "epoch": 0, "limit": 20, "has_budget": True}
    return Hold(**fields | given)


def now_of(front: PlayedFront) -> float:
    """The notary's time, as its newest event has it."""
    front.value(WriteEvent(AuditEvent(event_type="AdminDrain", trace_id="trc_t", decision="allow")))
    return parse_iso(events(front, event_type="AdminDrain")[0]["timestamp"])


def held(front: PlayedFront, seconds: float = 300.0) -> tuple[str, str]:
    """A hold that waits, of a session that had two calls: approval and session."""
    session_id, now = with_budget(front, 2), now_of(front)
    asked = a_hold(session_id=session_id)
    approval = msgspec.structs.replace(asked.approval, created_at=now + seconds - 300.0, expires_at=now + seconds)
    answer = front.value(msgspec.structs.replace(asked, approval=approval), HoldInForce | Refusal)
    assert isinstance(answer, HoldInForce)
    return approval.approval_id, session_id


def granted(approval_id: str, **given: Any) -> AuditEvent:
    return call_event(
        **{"event_type": "ApprovalGranted", "decision": "allow", "approval_id": approval_id, "approved_by": "op"}
        | given
    )


def a_claim(front: PlayedFront, approval_id: str, **given: Any) -> MoveHold:
    fields: dict[str, Any] = {
        "outcome": '{"claimed_by":"op","claimed_at":"2026-01-01T00:00:00.000Z"}', "holder": front.front_id,
        "event": granted(approval_id),
    }  # fmt: skip
    return MoveHold(approval_id, "pending", "claimed", **fields | given)


def an_end(approval_id: str, state: str = "denied", **given: Any) -> MoveHold:
    fields: dict[str, Any] = {
        "outcome": '{"claimed_by":"op","claimed_at":"2026-01-01T00:00:00.000Z"}',
        "event": granted(approval_id, event_type="ApprovalDenied", decision="deny"),
    }  # fmt: skip
    return MoveHold(approval_id, "claimed", state, **fields | given)


def claimed(front: PlayedFront) -> tuple[str, str]:
    approval_id, session_id = held(front)
    assert front.value(a_claim(front, approval_id), ApprovalRecord | None) is not None
    return approval_id, session_id


# ------------------------------------------------------------------ what is looked at afterwards


def events(front: PlayedFront, **filters: Any) -> list[dict[str, Any]]:
    encoded = front.value(QueryEvents(EventQuery(**filters, limit=1000)), FoundEvents).events
    return [msgspec.json.decode(event) for event in encoded]


def rows(supervisor: PlayedSupervisor, table: str) -> int:
    path = f"file:{supervisor.settings.state_dir}/ledger.sqlite3?mode=ro"
    with closing(sqlite3.connect(path, uri=True)) as file, closing(settled(file)) as connection:
        return int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])


def counted(supervisor: PlayedSupervisor) -> dict[str, int]:
    tables = ("events", "intents", "unresolved", "receipts", "proofs", "approvals", "outbox")
    return {table: rows(supervisor, table) for table in tables}


def assert_refused(supervisor: PlayedSupervisor, front: PlayedFront, *asked: Operation[Any]) -> None:
    """Each of them is answered `refused`, leaves no row anywhere, and one line in the log."""
    for operation in asked:
        before, lines = counted(supervisor), len(supervisor.said(REFUSED))
        answer = front.ask(operation)
        assert (answer.problem, msgspec.msgpack.decode(answer.value)) == ("refused", None), (operation, answer)
        assert counted(supervisor) == before, operation
        (line,) = supervisor.said(REFUSED)[lines:]
        assert (line["front"], line["operation"]) == (front.front_id, type(operation).__name__)
