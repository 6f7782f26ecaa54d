"""The counts of the offline check, and its messages about ledgers without a tree and unreadable files."""

import json
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from notary import checkpoint_file
from notary.checkpoints import Checkpoints, public_keys
from notary.ledger.page_ring import RingEntry
from notary.opening import open_state
from notary.operations.table import PERFORMERS
from notary.reading.audit import Findings, check, neighbours, open_read_only
from notary.reading.ends import epoch_raised
from notary.reading.kept_checkpoints import KeptCheckpoint, keys_by_name, problem_of, read_kept
from notary.signing.receipt_keys import ReceiptKeys
from notary.tree import tiles
from notary.tree.checkpoint import Checkpoint
from notary.tree.merkle import leaf_hash
from notary.tree.notes import Keys, verifier_key
from notary.units.runner import TransactionRunner
from notary.units.tasks import Task
from tests.notary.reading.tampered import found
from tests.notary.running import HandClock, settings_in
from tests.notary.samples import make_note
from tests.support.naive_tree import naive_root
from tests.support.notary_thread import LIMITS

TREE_TAKEN_OUT = "DROP TABLE tiles", "DROP TABLE checkpoints", "ALTER TABLE events DROP COLUMN leaf"


@dataclass
class Audited:
    """A ledger of three events, two checkpoints over two of them, and the log's key."""

    folder: Path
    signers: Keys

    def execute(self, *statements: str) -> None:
        with closing(sqlite3.connect(self.folder / "ledger.sqlite3")) as connection, connection:
            for statement in statements:
                connection.execute(statement)

    def check(self, *, has_kept: bool = False, has_signers: bool = False) -> Findings:
        """The journal is not asked, and without receipts there is no key of receipts."""
        signers = self.signers if has_signers else None
        kept = read_kept(self.folder / checkpoint_file.FILE_NAME, self.signers) if has_kept else []
        with closing(open_read_only(self.folder / "ledger.sqlite3")) as connection:
            return check(connection, ReceiptKeys({"keys": []}), lambda done, total: None, kept, signers)


@pytest.fixture
def audited(tmp_path: Path) -> Audited:
    state, _ = open_state(settings_in(tmp_path), HandClock(), limits=LIMITS)
    units, checkpoints = TransactionRunner(state, PERFORMERS), Checkpoints(state)
    for number in range(3):
        units.perform([Task("front-1", number, make_note())])
        if number < 2:
            checkpoints.make()
    (key,) = public_keys(state.signers)
    state.database.close()
    return Audited(tmp_path, keys_by_name([verifier_key("localhost", key)]))


def test_checkpoints_count_where_they_were_compared_with_a_key(audited: Audited) -> None:
    alone = audited.check()
    assert (alone.broken, alone.events, alone.signed, alone.unsigned_leaves, alone.continued) == (None, 3, 0, 0, 0)
    findings = audited.check(has_signers=True, has_kept=True)
    assert (findings.broken, findings.signed, findings.unsigned_leaves, findings.continued) == (None, 2, 1, 2)


def test_a_broken_ledger_counts_none(audited: Audited) -> None:
    audited.execute("UPDATE events SET action_id = 'other' WHERE seq = 1")
    findings = audited.check(has_signers=True)
    assert findings.broken is not None
    assert (findings.signed, findings.unsigned_leaves) == (0, 0)


def test_a_kept_checkpoint_reveals_a_ledger_with_its_tree_removed(audited: Audited) -> None:
    audited.execute("UPDATE meta SET value = '4' WHERE key = 'schema'")
    assert "of schema 4, which had no tree, and it has one" in found(audited.check().broken).reason
    audited.execute(*TREE_TAKEN_OUT)
    findings = audited.check()
    assert (findings.broken, findings.events, findings.signed) == (None, 3, 0)
    assert "its tree was taken out" in found(audited.check(has_kept=True).broken).reason


def test_the_logs_key_reveals_a_ledger_with_its_tree_removed(audited: Audited) -> None:
    audited.execute("UPDATE meta SET value = '4' WHERE key = 'schema'", *TREE_TAKEN_OUT)
    broken = found(audited.check(has_signers=True).broken)
    assert "no checkpoint commits to it" in broken.reason
    assert "its tree was taken out" in broken.reason


def test_an_unreadable_ledger_has_no_neighbouring_events() -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        assert neighbours(connection, 1) == []


@pytest.mark.parametrize(
    ("stored", "epoch"),
    [({"change": {"current_epoch": 7}}, 7), ({}, 0), ({"change": None}, 0), ({"change": {}}, 0), ({"change": 1}, 0)],
)
def test_an_event_that_raised_the_epoch_says_to_what_or_nothing(stored: dict[str, object], epoch: int) -> None:
    assert epoch_raised(json.dumps(stored).encode()) == epoch
    assert epoch_raised(b"{") == 0


NOTE = Checkpoint("gate.example", 1, bytes(32), "2026-11-23T05:00:00.000Z", 0).text + "\n— gate.example aWRfX3M=\n"
LINE = json.dumps({"time": "2026", "note": NOTE})


@pytest.mark.parametrize(
    ("lines", "count"),
    [
        ([LINE], 1), ([LINE, LINE, '{"time":"20'], 2), ([LINE, '{"time":"20', "", LINE], 2), ([LINE, '{"time":"}'], 1),
        ([LINE, '{"time":"}', LINE], None), (['{"time":"20', '{"time":"20'], None),
    ],
)  # fmt: skip
def test_lines_cut_by_a_crash_are_skipped_and_other_malformed_lines_are_errors(
    tmp_path: Path, lines: list[str], count: int | None
) -> None:
    path = tmp_path / "checkpoints"
    path.write_text("\n".join(lines))
    if count is None:
        with pytest.raises(ValueError, match=r"no JSON object|no checkpoint"):
            read_kept(path, {})
    else:
        assert [one.checkpoint.size for one in read_kept(path, {})] == [1] * count


def test_a_checkpoint_over_what_lies_in_the_journal_alone_is_continued_too() -> None:
    """A crash undoes settling, which needs no flush, and no checkpoint that was signed after it."""
    stored = [b"event %d" % number for number in range(14)]
    waiting = RingEntry(events=[(1 + at, "", "", 0, None, None, None, None, None, stored[at]) for at in range(5, 14)])
    waiting.event_leaves += range(5, 14)
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.execute(tiles.TABLE)
        tiles.append(connection, map(leaf_hash, stored[:5]))

        def problem(size: int, root: bytes) -> str | None:
            made = Checkpoint("gate.example", size, root, "2026-11-23T05:00:00.000Z", 0)
            return problem_of(connection, [waiting], [KeptCheckpoint(Path("kept"), made)])

        for size in range(1, 15):
            assert problem(size, naive_root(stored[:size])) is None
            assert "it was rewritten" in (problem(size, bytes(32)) or "")
        assert "it was cut" in (problem(15, bytes(32)) or "")
