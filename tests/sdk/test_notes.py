"""Signed notes: opened by the key that was known before, and by no other; noise is refused by name."""

import pytest
from gateway_client import Checkpoint, EvidenceRefused, VerifierKey, open_checkpoint, open_note
from gateway_client.evidence.notes import MAX_NOTE, WITNESS, Note
from hypothesis import given
from hypothesis import strategies as st

from contrib.verify import oracle

ROOT = oracle.tree_hash([b"one"])
TEXT = oracle.note_text(oracle.ORIGIN, 1, ROOT)
NOTE = oracle.note(TEXT)
KEY = VerifierKey.parse(oracle.vkey(oracle.ORIGIN, oracle.LOG_KEY))
STRANGER = VerifierKey.parse(oracle.vkey(oracle.ORIGIN, oracle.STRANGER))


def test_a_checkpoint_is_what_its_log_signed() -> None:
    assert open_checkpoint(NOTE, [STRANGER, KEY]) == Checkpoint(oracle.ORIGIN, 1, ROOT, oracle.TIME, 3)
    assert open_note(NOTE, [KEY]) == TEXT


def test_a_note_of_another_text_is_opened_too() -> None:
    """C2SP signed-note knows nothing of checkpoints."""
    text = "any text\n\N{SNOWMAN}\n"
    assert open_note(oracle.note(text), [KEY]) == text
    with pytest.raises(EvidenceRefused, match="another form"):
        open_checkpoint(oracle.note(text), [KEY])


def test_later_lines_of_a_checkpoint_are_allowed_when_they_are_signed() -> None:
    assert open_checkpoint(oracle.note(TEXT + "later\n"), [KEY]).size == 1


@pytest.mark.parametrize(
    ("note", "reason"),
    [
        (oracle.note(TEXT, oracle.STRANGER), "note_signature"),
        (oracle.note(TEXT, name="gate.example.org"), "note_signature"),
        (NOTE.replace("\n1\n", "\n2\n"), "note_signature"),
        (oracle.note(oracle.note_text("gate.example.org", 1, ROOT), name="gate.example.org"), "note_origin"),
        (oracle.note(oracle.note_text("gate.example.org", 1, ROOT)), "note_origin"),
        (NOTE.replace("\n1\n", "\n\N{ARABIC-INDIC DIGIT ONE}\n"), "note_malformed"),
        (NOTE + "x" * MAX_NOTE, "note_malformed"),
        (TEXT, "note_malformed"),
    ],
)
def test_a_note_that_the_trusted_key_did_not_sign_is_refused(note: str, reason: str) -> None:
    with pytest.raises(EvidenceRefused) as raised:
        open_checkpoint(note, [KEY])
    assert raised.value.reason == reason


def test_a_cosignature_has_its_time_and_one_key() -> None:
    (name, other), (_, stranger) = oracle.WITNESSES.items()
    note = Note.parse(oracle.note(TEXT, more=oracle.cosignature_line(TEXT, name, other)))
    assert (
        note.check_cosignature(VerifierKey.parse(oracle.vkey(name, other, WITNESS), WITNESS)) == "2026-11-23T05:00:05Z"
    )
    with pytest.raises(EvidenceRefused):
        note.check_cosignature(VerifierKey.parse(oracle.vkey(name, stranger, WITNESS), WITNESS))
    with pytest.raises(ValueError, match="of type 1"):
        VerifierKey.parse(oracle.vkey(name, other, WITNESS))


@given(st.text() | st.tuples(st.integers(0, len(NOTE)), st.text(max_size=3)).map(lambda at: NOTE[: at[0]] + at[1]))
def test_noise_is_refused_by_name(noise: str) -> None:
    if noise != NOTE:
        with pytest.raises(EvidenceRefused):
            open_checkpoint(noise, [KEY])


@given(st.text())
def test_noise_is_no_key(noise: str) -> None:
    with pytest.raises(ValueError, match="verifier key"):
        VerifierKey.parse(noise)
