"""Checkpoints of a running notary, the file beside its database, and proofs that strangers check."""

import json
import resource
import signal
from base64 import b64decode
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import msgspec
import pytest
from gateway_client import verify_bundle

from contract.evidence import Bundle
from ipc.operations.evidence import Prove, ProveConsistency, ReadCheckpoint
from notary import checkpoint_file
from notary.backends.sqlite import connect
from notary.checkpoints import Checkpoints, RolledBack, problem_of_return, public_keys
from notary.opening import open_state
from notary.state import NotaryState
from notary.tree.checkpoint import Checkpoint, parted
from notary.tree.merkle import check_consistency
from notary.tree.notes import opened_checkpoint
from tests.notary.conftest import StartNotary
from tests.notary.running import Running, walk
from tests.notary.samples import make_note, make_open, record_call
from tests.support.asking import Told
from tests.support.notary_thread import LIMITS


def file_of(notary: Running) -> Path:
    return notary.folder / checkpoint_file.FILE_NAME


def notes(notary: Running) -> list[str]:
    """The file's notes, oldest first."""
    return [json.loads(line)["note"] for line in file_of(notary).read_text().splitlines()]


def state_of(notary: Running) -> NotaryState:
    return notary.thread.state


def checked(notary: Running, note: str) -> Checkpoint:
    """Verify a note's signature and return its text."""
    return opened_checkpoint(note, public_keys(state_of(notary).signers))


def grow(notary: Running, calls: int = 3) -> None:
    for number in range(calls):
        notary.clock.time += 1
        record_call(notary.front)
        notary.front.ask(make_note(reason=f"{number}"))


def shown(notary: Running) -> Checkpoint:
    return checked(notary, notary.front.ask(ReadCheckpoint()).checkpoint)


def shown_after(notary: Running) -> Checkpoint:
    """The one of a tree that has grown by a leaf."""
    notary.front.ask(make_note())
    return shown(notary)


def test_a_checkpoint_commits_to_everything_that_was_answered(notary: Running) -> None:
    grow(notary)
    told = notary.front.ask(ReadCheckpoint())
    made = checked(notary, told.checkpoint)
    assert made.size == told.size == 9
    assert (made.origin, told.origin, told.unresolved_intents) == ("localhost", "localhost", 0)
    report = walk(notary.front)
    assert (report.size, report.root, report.checkpoint) == (told.size, told.root, told.checkpoint)
    assert notes(notary)[-1] == told.checkpoint
    assert notary.stored("SELECT note FROM checkpoints ORDER BY size DESC LIMIT 1") == [told.checkpoint]


def test_a_growing_tree_gets_one_in_time_and_no_more_than_that(notary: Running) -> None:
    grow(notary)
    notary.stop()
    state, _ = open_state(notary.settings, notary.clock, limits=LIMITS)
    now = [100.0]
    made = Checkpoints(state, lambda: now[0])
    assert made.patience() == float("inf")
    assert state.leaves is not None
    before = len(notes(notary))
    state.leaves += 1  # as a unit does
    assert 0 < made.patience() <= LIMITS.checkpoint_seconds
    now[0] += LIMITS.checkpoint_seconds
    assert made.patience() == 0.0
    made.tend()
    assert 0 < made.patience() <= LIMITS.checkpoint_seconds
    made.tend()
    assert len(notes(notary)) == before  # the tree itself has not grown
    now[0] += LIMITS.checkpoint_seconds
    assert made.patience() == 0.0
    state.database.close()


def test_one_checkpoint_is_proven_to_continue_another(notary: Running) -> None:
    made = []
    for _ in range(4):
        grow(notary)
        made.append(shown(notary))
    last = made[-1]
    for earlier in made:
        answer = notary.front.ask(ProveConsistency(earlier.size))
        assert checked(notary, answer.checkpoint) == last
        check_consistency(earlier.size, earlier.root, last.size, last.root, [b64decode(one) for one in answer.proof])
    assert notary.front.ask(ProveConsistency(0)).proof == (), "every tree continues the empty one"
    assert notary.front.ask(ProveConsistency(last.size + 1)) is None
    assert notary.front.ask(ProveConsistency(-1)) is None


def proven(notary: Running, bundle: Bundle) -> bool:
    """True if the client library, which shares no code of verification with the notary, proves the bundle."""
    keys = json.loads((notary.folder / "receipt-keys.jwks.json").read_bytes())
    assert bundle.keys is not None
    data = msgspec.json.encode(bundle)
    return verify_bundle(data, origin_keys=bundle.keys.checkpoints[0], receipt_keys=keys).is_proven


def test_a_bundle_and_the_logs_key_prove_a_call(notary: Running) -> None:
    grow(notary)
    asked, closed = record_call(notary.front, action_version="1.0.0", request_hash="sha256:" + "a" * 64)
    grow(notary)
    bundles = [
        notary.front.ask(Prove(receipt_id=closed.receipt_id)), notary.front.ask(Prove(intent_id=asked.intent_id)),
    ]  # fmt: skip
    assert bundles[0] == bundles[1]
    assert [leaf.kind for leaf in bundles[0].leaves] == ["event", "intent"]
    assert proven(notary, bundles[0])
    event = msgspec.json.decode(b64decode(bundles[0].leaves[0].bytes))
    assert notary.front.ask(Prove(event_id=event["event_id"])) == bundles[0]


def test_an_event_older_than_the_tree_is_proven_at_its_place(notary: Running) -> None:
    notary.front.ask(make_note())
    asked = Prove(event_id=notary.last_event()["event_id"])
    bundle = notary.front.ask(asked)
    assert [(leaf.kind, leaf.index) for leaf in bundle.leaves] == [("event", 0)]
    notary.execute("UPDATE events SET leaf = NULL")
    notary.execute("UPDATE meta SET value = '[1,0]' WHERE key = 'history'")
    assert notary.front.ask(asked) == bundle


def test_an_intent_older_than_the_tree_is_proven_at_its_place(notary: Running) -> None:
    asked = make_open()
    notary.front.begin(asked)
    bundle = notary.front.ask(Prove(intent_id=asked.intent_id))
    assert [(leaf.kind, leaf.index) for leaf in bundle.leaves] == [("intent", 0)]
    notary.execute("UPDATE intents SET leaf = NULL")
    notary.execute("UPDATE meta SET value = '[0,1]' WHERE key = 'history'")
    assert notary.front.ask(Prove(intent_id=asked.intent_id)) == bundle


@pytest.mark.parametrize("asked", [Prove(event_id="evt_x"), Prove(intent_id="x"), Prove(receipt_id=""), Prove()])
def test_a_missing_call_has_no_bundle(notary: Running, asked: Prove) -> None:
    grow(notary)
    assert notary.front.ask(asked) is None


def older(notary: Running) -> Callable[[], None]:
    """Keep a copy of the ledger as it is; putting it back is what is returned."""
    notary.stop()
    copy = notary.path.read_bytes()
    notary.start()

    def put_back() -> None:
        for beside in ("-wal", "-shm"):
            notary.path.with_name(notary.path.name + beside).unlink(missing_ok=True)
        notary.path.write_bytes(copy)

    return put_back


def refusal(notary: Running) -> str:
    """Why no notary starts."""
    with pytest.raises(RolledBack) as refused:
        open_state(notary.settings, notary.clock, limits=LIMITS)
    assert "accept-rollback" in str(refused.value)
    return str(refused.value)


def test_a_ledger_that_went_another_way_is_refused_however_long_it_is(notary: Running, tmp_path: Path) -> None:
    grow(notary)
    put_back = older(notary)
    continued = file_of(notary).read_bytes()
    grow(notary)
    notary.stop()
    kept = file_of(notary).read_bytes()
    put_back()
    file_of(notary).write_bytes(continued)
    notary.start()
    grow(notary, 9)
    notary.stop()
    file_of(notary).write_bytes(kept)
    assert "it was rewritten" in refusal(notary)


def test_a_file_of_checkpoints_that_is_gone_or_signed_by_a_stranger_is_refused(
    notary: Running, start_notary: StartNotary
) -> None:
    grow(notary)
    other = start_notary("other")
    grow(other)
    notary.stop()
    other.stop()
    kept = file_of(notary).read_bytes()
    file_of(notary).unlink()
    assert "is gone" in refusal(notary)
    file_of(notary).write_bytes(b"\n\n")
    assert "has no checkpoint that can be read" in refusal(notary)
    file_of(notary).write_bytes(file_of(other).read_bytes())
    assert "can't be believed" in refusal(notary)
    file_of(notary).write_bytes(kept)
    assert walk(notary.start()).intact


def test_a_line_that_a_full_disk_took_in_part_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "checkpoints"
    checkpoint_file.append(path, "2026-11-23T05:00:00.000Z", "one")
    whole = path.read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(whole) + 10, hard))
    try:
        with pytest.raises(OSError, match="in part"):
            checkpoint_file.append(path, "2026-11-23T06:00:00.000Z", "two")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)
    assert path.read_bytes() == whole


def test_a_ledger_that_comes_back_is_gone_on_with_only_where_it_continues_the_last_checkpoint(notary: Running) -> None:
    grow(notary)
    last, notary.clock.time = shown(notary), notary.clock.time + 1
    later, other = shown_after(notary), msgspec.structs.replace(last, root=bytes(32))
    notary.stop()
    with closing(connect(notary.path, writes=False)) as connection:
        assert [problem_of_return(connection, one) for one in (None, last, later)] == [None] * 3
        for one in (other, msgspec.structs.replace(later, size=later.size + 1)):
            problem = problem_of_return(connection, one)
            assert problem is not None
            assert f"does not continue the checkpoint of {one.time}" in problem


def test_a_crash_between_file_and_database_is_made_good_by_the_next_checkpoint(notary: Running) -> None:
    grow(notary)
    notary.stop()
    notary.execute("DELETE FROM checkpoints")
    assert walk(notary.start()).intact
    grow(notary)
    assert notary.front.ask(ReadCheckpoint()).checkpoint == notes(notary)[-1]


def test_an_unwritable_file_stops_no_call_and_is_logged(notary: Running) -> None:
    grow(notary)
    assert shown(notary).size == 9
    file_of(notary).rename(notary.folder / "kept")
    file_of(notary).mkdir()
    for leaf in (9, 10):
        notary.front.ask(make_note())
        with pytest.raises(Told, match=f"no checkpoint covers leaf {leaf} yet") as told:
            notary.front.ask(Prove(event_id=notary.last_event()["event_id"]))
        assert (told.value.problem, told.value.part) == ("unavailable", "ledger")
    file_of(notary).rmdir()
    (notary.folder / "kept").rename(file_of(notary))
    assert shown(notary).size == 11


def test_a_clock_that_was_set_back_keeps_no_checkpoint_from_being_signed_and_no_ledger_from_being_continued(
    notary: Running,
) -> None:
    grow(notary)
    first = shown(notary)
    notary.clock.time -= 7200.0
    grow(notary)
    second = shown(notary)
    assert (second.size, second.time < first.time) == (18, True)
    notary.stop()
    sizes = [Checkpoint.parse(parted(note)[0]).size for note in notes(notary)]
    assert sizes == sorted(sizes)
    assert walk(notary.start()).checkpoint == notes(notary)[-1]
