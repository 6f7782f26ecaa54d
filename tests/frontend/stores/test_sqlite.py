"""The embedded store: the contract, and what is its own."""

import os
import random
import sqlite3
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import closing
from pathlib import Path

import pytest
import trio
from hypothesis import example, given, settings

from frontend.stores import counters, holds, proofs
from frontend.stores.interface import StoreUnavailable
from frontend.stores.sqlite import SqliteStore
from tests.frontend.stores.conftest import Start, line_of
from tests.frontend.stores.contract import NOW, OpenStore, StoreContract, pending
from tests.frontend.stores.model import Step, hold_against_model, steps


@pytest.fixture
async def open_store(tmp_path: Path) -> AsyncIterator[OpenStore]:
    opened: list[SqliteStore] = []

    async def open_again(lock_seconds: float = 60.0) -> SqliteStore:
        opened.append(await SqliteStore.open(tmp_path / "store.sqlite3", lock_seconds=lock_seconds))
        return opened[-1]

    yield open_again
    for store in opened:
        await store.close()


class TestSqliteStore(StoreContract):
    """The contract of every backend."""


@settings(max_examples=40, deadline=None)
@given(history=steps())
@example(
    [
        ("hold", ("ses_1", "r", 1, NOW)),
        ("approval_move", ("apr_0000", "pending", "pending"), {"outcome": "{}", "holder": "f1"}),
        ("approval_expire", (NOW + 300, 1)),
    ]
)
def test_any_history_gives_the_answers_of_the_plain_model(history: list[Step]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "store.sqlite3")
        trio.run(hold_against_model, lambda: SqliteStore.open(path), history)


async def test_a_closed_store_says_so(open_store: OpenStore) -> None:
    store = await open_store()
    await store.close()
    with pytest.raises(StoreUnavailable, match="closed"):
        await store.epoch()
    await store.close()


async def test_a_file_of_another_kind_or_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite3"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE other (x)")
    with pytest.raises(StoreUnavailable, match="not a store of this version"):
        await SqliteStore.open(path)
    with pytest.raises(StoreUnavailable, match="No such file"):
        await SqliteStore.open(tmp_path / "none" / "store.sqlite3")


async def test_every_operation_fails_closed_while_the_file_is_locked_and_works_again(
    open_store: OpenStore, tmp_path: Path
) -> None:
    store = await open_store(lock_seconds=0.05)
    path = tmp_path / "store.sqlite3"
    calls: list[Callable[[], Awaitable[object]]] = [
        lambda: store.check_in("p", NOW + 1, NOW), store.raise_epoch, lambda: store.budget_debit("s"),
        lambda: store.approval_hold(pending(1), 5, NOW), lambda: store.sweep(NOW, 0),
    ]  # fmt: skip
    with closing(sqlite3.connect(path, isolation_level=None)) as stranger:
        stranger.execute("BEGIN IMMEDIATE")
        for call in calls:
            with pytest.raises(StoreUnavailable, match="locked"):
                await call()
        assert await store.epoch() == 0
        stranger.execute("ROLLBACK")
    assert (await store.check_in("p", NOW + 1, NOW)).is_fresh
    assert await store.raise_epoch() == (0, 1)


def test_a_commit_that_fails_fails_all_that_shared_it_and_leaves_nothing(tmp_path: Path, start: Start) -> None:
    child = start("commit_on_full_disk", tmp_path / "store.sqlite3")
    assert [line_of(child) for _ in range(3)] == ["unavailable", "fresh True", "fresh False"]


async def test_a_store_that_lost_its_file_concludes_nothing(open_store: OpenStore, tmp_path: Path) -> None:
    store = await open_store()
    await store.check_in("p", NOW + 1, NOW)
    (tmp_path / "store.sqlite3").unlink()
    for _ in range(2):
        with pytest.raises(StoreUnavailable):
            await store.check_in("p", NOW + 1, NOW)
        with pytest.raises(StoreUnavailable):
            await store.epoch()


async def test_a_sweep_takes_a_bounded_bite_and_touches_no_live_proof(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite3"
    store = await SqliteStore.open(path)
    await store.close()
    with closing(sqlite3.connect(path)) as connection, connection:
        rows = [(int(NOW // 60) + minute, f"{number:05}", NOW) for minute in range(3) for number in range(3000)]
        connection.executemany("INSERT INTO proofs VALUES (?, ?, ?)", rows)
        connection.commit()
        left = []
        while proofs.sweep(NOW + 120)(connection):
            left.append(connection.execute("SELECT count(*) FROM proofs").fetchone()[0])
        assert left == [9000 - proofs.SWEPT_AT_ONCE, 9000 - 2 * proofs.SWEPT_AT_ONCE, 9000 - 3 * proofs.SWEPT_AT_ONCE]
        assert connection.execute("SELECT count(*) FROM proofs").fetchone()[0] == 3000


def test_no_operation_scans_a_table(tmp_path: Path) -> None:
    trio.run(_open_and_close, tmp_path / "store.sqlite3")
    statements: list[str] = []
    with closing(sqlite3.connect(tmp_path / "store.sqlite3", isolation_level=None)) as connection:
        connection.set_trace_callback(statements.append)
        for work in (
            lambda connection: proofs.check_in(connection, [proofs.Visit("p", NOW + 1, NOW)] * 2),
            proofs.epoch, proofs.raise_epoch, proofs.sweep(NOW),
            counters.open_budget("s", 1, NOW), counters.read("s"), counters.debit("s"), counters.refund("s"),
            counters.sweep(NOW), holds.hold(pending(1), 2, NOW), holds.get("apr_0001"), holds.newest(None, 5),
            holds.newest(("pending", "claimed"), 5), holds.expire(NOW + 1000, 5), holds.claimed_by_others(("f",)),
            holds.move("apr_0001", "expired", "failed", "{}", None, None), holds.count_pending(NOW), holds.sweep(NOW),
            holds.oldest_pending(NOW),
            holds.pending("s", "a", "r", NOW),
        ):  # fmt: skip
            work(connection)
        connection.set_trace_callback(None)
        assert len(statements) > 20
        for statement in statements:
            plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}")]
            scans = [line for line in plan if line.startswith("SCAN") and "INDEX" not in line]
            assert [scan for scan in scans if scan not in SMALL] == [], (
                statement, plan,
            )  # fmt: skip


SMALL = (
    "SCAN epochs", "SCAN live", "SCAN CONSTANT ROW", "SCAN asked VIRTUAL TABLE INDEX 1:",
    "SCAN json_each VIRTUAL TABLE INDEX 1:",
)  # fmt: skip
"""Tables of one row, and what was asked for."""


async def _open_and_close(path: Path) -> None:
    await (await SqliteStore.open(path)).close()


async def test_what_was_answered_survives_kill_nine_at_any_instant(tmp_path: Path, start: Start) -> None:
    path = tmp_path / "store.sqlite3"
    known: dict[str, list[str]] = defaultdict(list)
    seed = random.Random(os.urandom(8))
    for number in range(4):
        name = f"ses_{number}"
        child = start("use_store", path, name)
        await trio.to_thread.run_sync(_listen_then_kill, child, 20 + seed.randrange(150), known)
    store = await SqliteStore.open(path)
    assert len(known["proof"]) > 40
    for proof in known["proof"]:
        assert not (await store.check_in(proof, 2e10, 0.0)).is_fresh
    assert await store.epoch() >= int(known["epoch"][-1])
    for approval_id in known["approval"]:
        assert await store.approval_get(approval_id) is not None
    for number in range(4):
        last = [int(line.split()[1]) for line in known["debit"] if line.startswith(f"ses_{number} ")][-1]
        assert last - 1 <= (await store.budget_read(f"ses_{number}")).remaining <= last
    await store.close()


def _listen_then_kill(child: "subprocess.Popen[str]", lines: int, known: dict[str, list[str]]) -> None:
    assert child.stdout is not None
    for _ in range(lines):
        kind, _, rest = child.stdout.readline().strip().partition(" ")
        known[kind].append(rest)
    child.kill()
    # What it had said before it died counts too.
    for line in child.stdout.read().splitlines(keepends=True):
        if line.endswith("\n"):
            kind, _, rest = line.strip().partition(" ")
            known[kind].append(rest)
