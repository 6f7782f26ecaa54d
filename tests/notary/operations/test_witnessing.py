"""Cosignatures in the notary: what witnesses are given, and which of their answers become part of the evidence."""

import json
import sqlite3
from base64 import b64decode
from collections.abc import Callable
from contextlib import closing
from typing import Any

import msgspec
import pytest
from gateway_client import verify_bundle
from gateway_client.evidence.notes import VerifierKey as SdkKey
from gateway_client.evidence.notes import open_checkpoint

from ipc.operations.evidence import Prove, ReadCheckpoint
from ipc.operations.status import ReadLedger
from ipc.operations.witnesses import Cosign, NextCheckpoint, NoteTrouble, ToCosign, WitnessedCheckpoint
from ipc.process.clock import iso
from notary import checkpoint_file
from notary.checkpoints import check_continued
from notary.operations.witnessing import SKEW_SECONDS
from notary.reading.kept_checkpoints import keys_by_name, read_kept
from notary.tree.checkpoint import Checkpoint, parted
from notary.tree.merkle import check_consistency
from tests.notary.conftest import StartNotary
from tests.notary.running import Running
from tests.notary.samples import NOW, make_note, record_call
from tests.support.asking import Told
from tests.support.cosigners import CITY, COAST, Cosigner, witnessed_by


@pytest.fixture
def witnessed(start_notary: StartNotary) -> Running:
    """A notary with two witnesses."""
    return start_notary(evidence=witnessed_by(CITY, COAST))


def signed(notary: Running) -> str:
    """The note of a checkpoint of everything that is there by now."""
    note: str = notary.front.ask(ReadCheckpoint()).checkpoint
    return note


def grown(notary: Running) -> str:
    """The same once there is more."""
    notary.front.ask(make_note())
    return signed(notary)


def said(note: str) -> Checkpoint:
    return Checkpoint.parse(parted(note)[0])


def next_for(notary: Running, one: Cosigner = CITY, old_size: int | None = None) -> ToCosign | None:
    asked: ToCosign | None = notary.front.ask(NextCheckpoint(one.name, old_size))
    return asked


def cosigned(notary: Running, note: str, one: Cosigner = CITY, time: float = NOW) -> None:
    assert notary.front.ask(Cosign(one.name, said(note).size, one.lines(note, time))) is None


def last(notary: Running) -> WitnessedCheckpoint:
    checkpoint: WitnessedCheckpoint = notary.front.ask(ReadLedger()).checkpoint
    return checkpoint


def file_notes(notary: Running) -> list[str]:
    lines = (notary.folder / checkpoint_file.FILE_NAME).read_text().splitlines()
    return [json.loads(line)["note"] for line in lines]


def test_a_cosigned_checkpoint_is_served_kept_in_the_database_and_in_the_file(witnessed: Running) -> None:
    note = grown(witnessed)
    for one in (CITY, COAST):
        cosigned(witnessed, note, one)
    whole = signed(witnessed)
    assert whole == note + CITY.lines(note, NOW) + COAST.lines(note, NOW)
    assert witnessed.stored("SELECT note FROM checkpoints ORDER BY size DESC LIMIT 1") == [whole]
    assert file_notes(witnessed)[-1] == checkpoint_file.newest(witnessed.folder / "checkpoints") == whole


def test_cosignatures_that_come_in_one_unit_are_all_kept(witnessed: Running) -> None:
    note = grown(witnessed)
    size = said(note).size
    numbers = witnessed.front.send(*(Cosign(one.name, size, one.lines(note, NOW)) for one in (CITY, COAST)))
    assert [witnessed.front.answer(number) for number in numbers] == [None, None]
    assert signed(witnessed).count("\N{EM DASH} ") == 3
    for _ in range(2):
        assert [one.size for one in last(witnessed).witnesses] == [size, size]
        witnessed.restart()


def test_a_cosigned_checkpoint_passes_every_verifier(witnessed: Running) -> None:
    _, closed = record_call(witnessed.front, action_version="1.0.0", request_hash="sha256:" + "a" * 64)
    note = signed(witnessed)
    for one in (CITY, COAST):
        cosigned(witnessed, note, one)
    bundle = witnessed.front.ask(Prove(receipt_id=closed.receipt_id))
    assert bundle.keys.witnesses == (CITY.key.text, COAST.key.text)
    log_key, witness_keys = bundle.keys.checkpoints[0], bundle.keys.witnesses
    call = verify_bundle(msgspec.json.encode(bundle), origin_keys=log_key, witness_keys=witness_keys).call
    assert call is not None
    assert len(call.witnesses) == 2
    assert open_checkpoint(bundle.checkpoint, [SdkKey.parse(log_key)]).size == said(note).size
    kept = witnessed.folder / "kept"
    kept.write_text(bundle.checkpoint)
    assert read_kept(kept, keys_by_name([log_key]))[0].checkpoint == said(note)
    witnessed.restart()
    assert last(witnessed).size == said(note).size


@pytest.mark.parametrize("off", [-SKEW_SECONDS, SKEW_SECONDS])
def test_a_witness_whose_clock_is_off_within_the_bound_is_believed(witnessed: Running, off: int) -> None:
    cosigned(witnessed, grown(witnessed), time=NOW + off)
    assert last(witnessed).witnesses[0].size == 1


WRONG: list[tuple[str, Callable[[str], str]]] = [
    ("no signature by the witness's key", lambda note: COAST.lines(note, NOW)),
    ("no signature by the witness's key", lambda note: Cosigner("city", 7).lines(note, NOW)),
    ("does not hold", lambda note: CITY.lines(note.replace("unresolved=0", "unresolved=1"), NOW)),
    ("before the checkpoint was signed", lambda note: CITY.lines(note, NOW - SKEW_SECONDS - 1)),
    ("in the future", lambda note: CITY.lines(note, NOW + SKEW_SECONDS + 1)),
    ("no signature lines", lambda note: ""),
    ("no signature lines", lambda note: "x" * 20_000 + "\n"),
    ("makes no sense", lambda note: "<html>\n"),
    ("is not base64", lambda note: "— city.example/w \u20ac\n"),
]


@pytest.mark.parametrize(("why", "answer"), WRONG)
def test_an_invalid_cosignature_is_refused_and_named_in_the_status(
    witnessed: Running, why: str, answer: Callable[[str], str]
) -> None:
    note = grown(witnessed)
    before = file_notes(witnessed)
    problem = witnessed.front.ask(Cosign(CITY.name, said(note).size, answer(note)))
    assert why in problem
    assert signed(witnessed) == note
    assert file_notes(witnessed) == before
    assert [(one.name, one.size, one.problem) for one in last(witnessed).witnesses] == [
        ("city", None, problem), ("coast", None, None),
    ]  # fmt: skip
    cosigned(witnessed, note)
    assert [(one.size, one.time, one.problem) for one in last(witnessed).witnesses] == [
        (said(note).size, iso(NOW), None), (None, None, None),
    ]  # fmt: skip


def test_a_checkpoint_that_the_log_does_not_have_is_not_cosigned(witnessed: Running) -> None:
    note = grown(witnessed)
    assert "no checkpoint of this size" in witnessed.front.ask(Cosign("city", 99, CITY.lines(note, NOW)))


def test_a_stored_checkpoint_that_is_damaged_is_a_ledger_that_can_not_be_read(witnessed: Running) -> None:
    grown(witnessed)
    witnessed.execute("UPDATE checkpoints SET note = 'torn'")
    with pytest.raises(Told) as told:
        next_for(witnessed)
    assert told.value.problem == "unavailable"


@pytest.mark.parametrize("asked", [NextCheckpoint("town"), Cosign("town", 1, ""), NoteTrouble("town", "x")])
def test_a_cosignature_of_a_witness_that_is_not_configured_is_refused(witnessed: Running, asked: Any) -> None:
    with pytest.raises(Told) as told:
        witnessed.front.ask(asked)
    assert told.value.problem == "refused"


def test_a_witness_is_given_the_newest_checkpoint_with_the_proof_that_it_continues_what_it_knows(
    witnessed: Running,
) -> None:
    assert next_for(witnessed) is None  # nothing was ever signed
    first = said(grown(witnessed))
    asked = next_for(witnessed)
    assert asked is not None
    assert (asked.old_size, asked.size, asked.proof) == (0, first.size, ())
    cosigned(witnessed, asked.note)
    assert next_for(witnessed) is None
    note = [grown(witnessed) for _ in range(5)][-1]
    asked = next_for(witnessed)
    assert asked is not None
    assert (asked.old_size, asked.note) == (first.size, note)
    path = [b64decode(one) for one in asked.proof]
    check_consistency(first.size, first.root, asked.size, said(note).root, path)
    told = next_for(witnessed, old_size=asked.size)
    assert told is not None
    assert (told.old_size, told.proof) == (asked.size, ())


def test_a_witness_that_knows_more_than_the_log_has_gets_no_proof(witnessed: Running) -> None:
    size = said(grown(witnessed)).size
    asked = next_for(witnessed, old_size=size + 1)
    assert asked is not None
    assert (asked.old_size, asked.size, asked.proof) == (size + 1, size, ())


def test_the_next_notary_knows_the_cosignatures_of_each_key(witnessed: Running, start_notary: StartNotary) -> None:
    note = grown(witnessed)
    cosigned(witnessed, note)
    witnessed.front.ask(NoteTrouble("coast", "no answer\x1b in time"))
    assert last(witnessed).witnesses[1].problem == "no answer in time"
    witnessed.restart()
    assert [(one.size, one.problem) for one in last(witnessed).witnesses] == [(said(note).size, None), (None, None)]
    witnessed.stop()
    witnessed.settings = msgspec.structs.replace(witnessed.settings, evidence=witnessed_by(Cosigner("city", 9)))
    witnessed.start()
    assert [one.size for one in last(witnessed).witnesses] == [None]
    assert next_for(witnessed) is not None


def test_a_cosignature_that_comes_late_hides_no_newer_checkpoint_from_a_start(witnessed: Running) -> None:
    old = grown(witnessed)
    new = grown(witnessed)
    cosigned(witnessed, old)
    notes = file_notes(witnessed)
    assert notes[-1].startswith(old)
    assert checkpoint_file.newest(witnessed.folder / "checkpoints") == new
    assert signed(witnessed) == new
    assert last(witnessed).witnesses[0].size == said(old).size
    signers = witnessed.thread.state.signers
    witnessed.stop()
    with closing(sqlite3.connect(witnessed.path)) as ledger:
        continued = check_continued(ledger, witnessed.folder, signers)
    assert continued is not None
    assert continued.size >= said(new).size


def test_the_largest_cosigned_size_stays_whatever_comes_after(witnessed: Running) -> None:
    old, new = grown(witnessed), grown(witnessed)
    cosigned(witnessed, new)
    cosigned(witnessed, old)
    assert last(witnessed).witnesses[0].size == said(new).size
    assert signed(witnessed) == new + CITY.lines(new, NOW)


def test_a_bundle_leads_to_a_cosigned_checkpoint_that_covers_it_and_else_to_the_newest(witnessed: Running) -> None:
    event_id = (witnessed.front.ask(make_note()), witnessed.last_event()["event_id"])[1]
    first = signed(witnessed)
    cosigned(witnessed, first)
    second = grown(witnessed)
    later = witnessed.last_event()["event_id"]
    assert witnessed.front.ask(Prove(event_id=event_id)).checkpoint == first + CITY.lines(first, NOW)
    assert witnessed.front.ask(Prove(event_id=later)).checkpoint == second
    cosigned(witnessed, second, COAST)
    assert said(witnessed.front.ask(Prove(event_id=event_id)).checkpoint) == said(second)
    cosigned(witnessed, second, CITY)
    third = grown(witnessed)
    cosigned(witnessed, third, CITY)
    # Both have cosigned the second, and one the third.
    assert said(witnessed.front.ask(Prove(event_id=later)).checkpoint) == said(second)


def test_a_bundle_of_a_gateway_that_has_moved_leads_to_a_checkpoint_of_its_new_name(witnessed: Running) -> None:
    event_id = (witnessed.front.ask(make_note()), witnessed.last_event()["event_id"])[1]
    cosigned(witnessed, signed(witnessed))
    witnessed.settings = msgspec.structs.replace(witnessed.settings, public_base_url="http://moved.example")
    witnessed.restart()
    newest = grown(witnessed)
    bundle = witnessed.front.ask(Prove(event_id=event_id))
    assert (bundle.origin, bundle.checkpoint) == ("moved.example", newest)


def test_a_file_that_can_not_be_written_keeps_no_cosignature_out_of_the_database(witnessed: Running) -> None:
    note = grown(witnessed)
    (witnessed.folder / "checkpoints").rename(witnessed.folder / "away")
    (witnessed.folder / "checkpoints").mkdir()
    cosigned(witnessed, note)
    assert last(witnessed).witnesses[0].size == said(note).size
    (witnessed.folder / "checkpoints").rmdir()
    (witnessed.folder / "away").rename(witnessed.folder / "checkpoints")
    assert signed(witnessed) == note + CITY.lines(note, NOW)


def test_status_tells_the_last_checkpoint_without_any_witness(notary: Running) -> None:
    assert notary.front.ask(ReadLedger()).checkpoint is None
    made = said(grown(notary))
    shown = last(notary)
    assert (shown.origin, shown.size, shown.time) == (made.origin, made.size, made.time)
    assert (b64decode(shown.root), shown.witnesses) == (made.root, ())
