"""Texts that are erased lie in pages of their own: no copy of them is left in the file."""

import random
import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
import pytest

from ipc.approvals import DENIED, PENDING
from ipc.backends.store import ApprovalRecord
from notary.backends.sqlite import connect
from notary.store import holds, kept
from notary.store.keyed_calls import OUTPUTS
from tests.support.ledger_file import made_ledger

ALL_ENDED: Final = 1e9
EPOCH: Final = 70_000
"""It takes more bytes than the one that stands for an ended session."""

Keep = Callable[[sqlite3.Connection, str, str], None]
Erase = Callable[[sqlite3.Connection, str], None]


def hold(ledger: sqlite3.Connection, key: str, text: str) -> None:
    plan = {"principal": "uid:7", "epoch": EPOCH, "request": text, "trace_id": "trc_1"}
    body = msgspec.json.encode({"plan": plan, "plan_hash": "sha256:1", "identity_method": "", "has_budget": True})
    holds.store(ledger, ApprovalRecord(
        approval_id=key, session_id=key, action_id="act", request_hash=key, state=PENDING, created_at=1.0,
        expires_at=2.0, body=body.decode(), holder=None, outcome="{}", principal="uid:7", epoch=EPOCH,
    ))  # fmt: skip


def deny(ledger: sqlite3.Connection, key: str) -> None:
    assert holds.move(ledger, key, PENDING, DENIED, outcome="{}") is not None


def deny_and_sweep(ledger: sqlite3.Connection, key: str) -> None:
    deny(ledger, key)
    holds.sweep(ledger, ALL_ENDED)


def deny_after_revoking(ledger: sqlite3.Connection, key: str) -> None:
    """The session ends, or the right is revoked, before the approval does."""
    holds.void(ledger, key)
    holds.void_one(ledger, key)
    deny(ledger, key)


def keep_approval(ledger: sqlite3.Connection, key: str, text: str) -> None:
    kept.APPROVALS.keep(ledger, key, "uid:7", 1.0, text)


def keep_output(ledger: sqlite3.Connection, key: str, text: str) -> None:
    OUTPUTS.keep(ledger, key, "uid:7", 1.0, text)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    with closing(connect(made_ledger(tmp_path / "ledger.sqlite3"), writes=True)) as connection:
        connection.execute("PRAGMA synchronous=OFF")
        yield connection


def numbers_in(ledger: sqlite3.Connection, folder: Path) -> set[int]:
    """The texts of which any file has bytes, once the write-ahead log is in the ledger."""
    ledger.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    raw = b"".join(one.read_bytes() for one in folder.glob("ledger.sqlite3*"))
    return {int(number) for number in re.findall(rb"<(\d{5})>", raw)}


class Workload(NamedTuple):
    """Keep texts of these lengths, then erase a share of all; again and again."""

    lengths: tuple[int, ...]
    kept: int
    erased: float


SMALL: Final = Workload((20, 60, 200, 900), 200, 0.9)
"""Lengths and numbers of which copies were found, without ROOM."""
MIXED: Final = Workload((20, 60, 200, 900), 30, 0.6)
LARGE: Final = Workload((100, 2000, 4000), 400, 0.7)


def work(ledger: sqlite3.Connection, keep: Keep, erase: Erase, load: Workload) -> set[int]:
    """Keep and erase texts in no order; the numbers of those that are left."""
    chance, keys, number = random.Random(0), dict[int, str](), 0
    while number < 2400:
        for _ in range(load.kept):
            keys[number] = f"{chance.getrandbits(60):015x}"
            keep(ledger, keys[number], f"<{number:05}>" * (chance.choice(load.lengths) // 7 + 1))
            number += 1
        for _ in range(int(len(keys) * load.erased)):
            erase(ledger, keys.pop(chance.choice(list(keys))))
    return set(keys)


@pytest.mark.parametrize(("keep", "erase", "load"), [
    pytest.param(hold, deny, MIXED, id="held requests"),
    pytest.param(hold, deny_and_sweep, LARGE, id="held requests that are swept"),
    pytest.param(hold, deny_after_revoking, LARGE, id="held requests of ended sessions"),
    pytest.param(keep_approval, kept.APPROVALS.erase, SMALL, id="ended approvals"),
    pytest.param(keep_output, OUTPUTS.erase, SMALL, id="outputs"),
])  # fmt: skip
def test_no_byte_of_an_erased_text_is_left_in_the_file(
    ledger: sqlite3.Connection, tmp_path: Path, keep: Keep, erase: Erase, load: Workload
) -> None:
    left = work(ledger, keep, erase, load)
    assert numbers_in(ledger, tmp_path) == left
    assert left


@pytest.mark.parametrize(("table", "keep", "erase"), [
    ("kept_approvals", keep_approval, kept.APPROVALS.erase), ("kept_outputs", keep_output, OUTPUTS.erase),
])  # fmt: skip
def test_a_file_of_an_earlier_version_loses_its_copies_and_no_text(
    ledger: sqlite3.Connection, tmp_path: Path, table: str, keep: Keep, erase: Erase
) -> None:
    ledger.execute(f"ALTER TABLE {table} DROP COLUMN room")
    left = work(ledger, keep, erase, SMALL)
    rows = ledger.execute(f"SELECT seq, bytes, record FROM {table} ORDER BY seq").fetchall()
    assert numbers_in(ledger, tmp_path) > left
    for _ in range(2):
        made_ledger(tmp_path / "ledger.sqlite3")
        assert numbers_in(ledger, tmp_path) == left
    assert ledger.execute(f"SELECT seq, bytes, record FROM {table} ORDER BY seq").fetchall() == rows
    keep(ledger, "again", "text")
    erase(ledger, "again")


def test_approvals_of_an_earlier_version_that_wait_go_on(ledger: sqlite3.Connection, tmp_path: Path) -> None:
    hold(ledger, "apr_1", "<00001>")
    ledger.execute("ALTER TABLE approvals DROP COLUMN room")
    made_ledger(tmp_path / "ledger.sqlite3")
    assert "<00001>" in getattr(holds.get(ledger, "apr_1"), "body", "")
    deny(ledger, "apr_1")
    assert numbers_in(ledger, tmp_path) == set()
