"""The request of an ended approval is kept for `approvals.keep_days`; then no byte of it is left: not in a table, the
journal, free pages, nor, soon, in the WAL."""

import re
from contextlib import closing
from typing import Any

import msgspec
import pytest

from ipc.approvals import read_remains, remains_of
from ipc.backends.store import ApprovalRecord
from ipc.operations.holds import GetHold
from notary.backends.sqlite import connect
from notary.state import NotaryLimits
from tests.notary.conftest import StartNotary
from tests.notary.running import Running, stored
from tests.notary.samples import (
    DIGEST,
    NOW,
    by_alice,
    make_approval,
    make_claim,
    make_denial,
    make_expiry,
    make_hold,
    record_call,
)
from tests.support.notary_thread import SMALL_WAL
from tests.support.supervised import wait_until

KEPT_SECONDS = 30 * 24 * 3600.0
"""`approvals.keep_days`, as it is by default."""
SOON = NotaryLimits(database=SMALL_WAL, wal_seconds=0.0, round_seconds=0.05)


def held(notary: Running, name: str, length: int, **given: Any) -> ApprovalRecord:
    """A hold whose request says its name again and again."""
    plan = {"principal": "uid:1000", "action_version": "1.0.0", "request": f"MARK-{name}-" * (length // 8 + 1)}
    body = {"plan": plan, "plan_hash": DIGEST, "identity_method": "", "has_budget": False}
    approval = make_approval(body=msgspec.json.encode(body).decode(), session_id=f"ses_{name}", **given)
    notary.front.ask(make_hold(approval))
    return approval


def requests_in(notary: Running) -> set[str]:
    """The approvals whose requests still stand anywhere in the bytes of the database's files."""
    # The WAL first: what it holds comes to the file before it is cut.
    files = b"".join(one.read_bytes() for one in sorted(notary.folder.glob("ledger.sqlite3*"), reverse=True))
    return {name.decode() for name in re.findall(rb"MARK-([a-z0-9]+)-", files)}


def month_passes(notary: Running) -> None:
    """The notary keeps no approval any more that has ended by now."""
    notary.clock.time += KEPT_SECONDS


@pytest.mark.parametrize("length", [10, 3_000, 300_000])
def test_no_byte_of_a_request_is_left_in_any_file_once_its_ended_approval_is_kept_no_more(
    start_notary: StartNotary, length: int
) -> None:
    notary = start_notary(limits=SOON)
    front = notary.front
    kept = {name: held(notary, name, length) for name in ("waits", "runs", "no", "yes")}
    late = held(notary, "late", length, expires_at=NOW + 5)
    for name in ("runs", "no", "yes"):
        front.ask(make_claim(kept[name]))
    assert requests_in(notary) == {*kept, "late"}
    front.ask(make_denial(kept["no"]))
    record_call(front, approver=by_alice(kept["yes"]))
    notary.clock.time = NOW + 6
    front.ask(make_expiry(late))
    assert requests_in(notary) == {*kept, "late"}
    month_passes(notary)
    wait_until(lambda: requests_in(notary) == {"waits", "runs"})
    assert {read_remains(body).plan_hash for body in stored(notary.path, "SELECT body FROM approvals")} == {DIGEST}


def test_an_ended_approval_keeps_its_request_in_one_place(start_notary: StartNotary) -> None:
    notary = start_notary(limits=SOON)
    approval = held(notary, "no", 3_000)
    notary.front.ask(make_claim(approval))
    notary.front.ask(make_denial(approval))
    (record,) = stored(notary.path, "SELECT record FROM kept_approvals")
    assert "MARK-no-" in record
    assert "MARK-no-" not in "".join(stored(notary.path, "SELECT body || summary || outcome FROM approvals"))
    shown = notary.front.ask(GetHold(approval.approval_id))
    assert (shown.state, shown.body) == ("denied", approval.body)
    assert notary.front.ask(GetHold(approval.approval_id, with_body=False)).body == ""
    month_passes(notary)
    wait_until(lambda: stored(notary.path, "SELECT * FROM kept_approvals") == [])


def test_a_reader_that_needs_the_wal_holds_no_call_up_and_delays_only_what_is_cut(start_notary: StartNotary) -> None:
    notary = start_notary(limits=SOON)
    approval = held(notary, "no", 3_000)
    with closing(connect(notary.path, writes=False)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM approvals").fetchone()
        notary.front.ask(make_claim(approval))
        notary.front.ask(make_denial(approval))
        month_passes(notary)
        wait_until(lambda: stored(notary.path, "SELECT * FROM kept_approvals") == [])
        record_call(notary.front)
        assert requests_in(notary) == {"no"}
    wait_until(lambda: requests_in(notary) == set())


def test_a_notary_that_follows_one_that_was_killed_finds_nothing_to_leave_in_the_wal(start_notary: StartNotary) -> None:
    notary = start_notary(limits=NotaryLimits(database=SMALL_WAL, round_seconds=0.05))
    approval = held(notary, "no", 3_000)
    with closing(connect(notary.path, writes=False)) as reader:  # so that the end of the notary leaves the WAL
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM approvals").fetchone()
        notary.front.ask(make_claim(approval))
        notary.front.ask(make_denial(approval))
        month_passes(notary)
        wait_until(lambda: stored(notary.path, "SELECT * FROM kept_approvals") == [])
        notary.stop()
        assert requests_in(notary) == {"no"}
        reader.execute("COMMIT")
        notary.start()
        wait_until(lambda: requests_in(notary) == set())


def test_the_remaining_record_has_neither_address_nor_path_nor_input() -> None:
    targets = ["POST https://bank.example/a/SECRET?q=SECRET", "GET http://h.example?SECRET", "fs:write SECRET/x"]
    plan = {
        "principal": "p", "request": "SECRET", "provider_input": "SECRET", "http_request": {"url": "SECRET"},
        "targets": targets, "unresolved_paths": ["SECRET"], "policy_rule": "hold",
    }  # fmt: skip
    left = remains_of(msgspec.json.encode({"plan": plan, "plan_hash": DIGEST, "has_budget": True}).decode())
    assert "SECRET" not in left
    kept = read_remains(left)
    assert kept.plan.targets == ("POST https://bank.example", "GET http://h.example", "fs:write")
    assert (kept.plan.principal, kept.plan.policy_rule, kept.plan_hash, kept.has_budget) == ("p", "hold", DIGEST, True)
    assert remains_of(left) == left


@pytest.mark.parametrize("body", ["", "{", "[]", '{"plan": 1}', "[" * 5000])
def test_an_unreadable_record_is_erased_whole(body: str) -> None:
    assert read_remains(remains_of(body)).plan_hash is None
