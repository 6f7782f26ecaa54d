"""Cosignatures: made and checked as C2SP tlog-cosignature says, by code that shares nothing with ours too."""

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from gateway_client.evidence.notes import WITNESS as SDK_WITNESS
from gateway_client.evidence.notes import Note
from gateway_client.evidence.notes import VerifierKey as SdkKey
from hypothesis import given
from hypothesis import strategies as st

from contrib.verify import oracle
from ipc.keys.verifier_keys import WITNESS, VerifierKey
from notary.tree.checkpoint import MAX_NOTE, NoteRefused, parted
from notary.tree.cosignatures import MAX_LINES, cosign, cosignature_in, count_cosignatures, with_cosignature
from notary.tree.notes import signed

NAME, PRIVATE = "witness.example/w1", Ed25519PrivateKey.from_private_bytes(b"w" * 32)
KEY = VerifierKey(NAME, WITNESS, PRIVATE.public_key().public_bytes_raw())
OTHER = Ed25519PrivateKey.from_private_bytes(b"o" * 32)
LOG = Ed25519PrivateKey.from_private_bytes(b"l" * 32)
TEXT = "gate.example\n3\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\ntime=2026-11-23T05:00:00.000Z unresolved=0\n"
NOTE = signed(TEXT, "gate.example", LOG)
TIME = 1_790_000_000
LINE = cosign(TEXT, NAME, PRIVATE, TIME)


def test_a_cosignature_is_one_to_others_and_theirs_is_one_to_us() -> None:
    note = with_cosignature(NOTE, cosignature_in(LINE, TEXT, KEY), KEY)
    assert Note.parse(note).check_cosignature(SdkKey.parse(KEY.text, SDK_WITNESS)) == "2026-09-21T14:13:20Z"
    name, private = next(iter(oracle.WITNESSES.items()))
    theirs = VerifierKey(name, WITNESS, private.public_key().public_bytes_raw())
    cosignature = cosignature_in(oracle.cosignature_line(TEXT, name, private), TEXT, theirs)
    assert cosignature.time == oracle.COSIGNED_AT


def test_the_one_that_counts_is_found_among_those_of_others() -> None:
    lines = cosign(TEXT, NAME, OTHER, TIME) + cosign(TEXT, "witness.example/w2", PRIVATE, TIME) + LINE
    assert cosignature_in(lines, TEXT, KEY) == (LINE, TIME)


def test_an_answer_at_its_bounds_is_read() -> None:
    others = [cosign(TEXT, f"witness.example/{number}", OTHER, TIME) for number in range(MAX_LINES - 2)]
    rest = MAX_NOTE - len("".join(others) + LINE)
    signature = "A" * ((rest - 100) // 4 * 4)
    long = f"— {'x' * (rest - len(signature) - 4)} {signature}\n"
    lines = long + "".join(others) + LINE
    assert (len(lines), lines.count("\n")) == (MAX_NOTE, MAX_LINES)
    assert cosignature_in(lines, TEXT, KEY) == (LINE, TIME)


@pytest.mark.parametrize(
    "lines",
    ["", "\n", LINE[:-1], LINE + "\n", "x\n" + LINE, LINE * 17, "— " + "x" * MAX_NOTE + "\n",
     cosign(TEXT, NAME, OTHER, TIME), cosign(TEXT + "x\n", NAME, PRIVATE, TIME), LINE.replace(NAME, "w"),
     signed(TEXT, NAME, PRIVATE).rpartition("\n\n")[2], LINE.replace("— ", "- "), f"{LINE[:-5]}AAA=\n",
     cosign(TEXT, NAME, PRIVATE, (1 << 63) + 5)],
)  # fmt: skip
def test_a_note_that_the_witness_did_not_sign_has_no_cosignature(lines: str) -> None:
    with pytest.raises(NoteRefused):
        cosignature_in(lines, TEXT, KEY)


def test_a_newer_cosignature_takes_the_place_of_the_one_before() -> None:
    other = VerifierKey("other", WITNESS, OTHER.public_key().public_bytes_raw())
    note = NOTE
    for time in (TIME, TIME + 5):
        for key, private in ((KEY, PRIVATE), (other, OTHER)):
            lines = cosign(TEXT, key.name, private, time)
            note = with_cosignature(note, cosignature_in(lines, TEXT, key), key)
    assert note.startswith(NOTE)
    assert len(parted(note)[1]) == 3
    assert count_cosignatures(note, [KEY, other]) == 2
    assert count_cosignatures(NOTE, [KEY, other]) == 0
    assert Note.parse(note).check_cosignature(SdkKey.parse(KEY.text, SDK_WITNESS)) == "2026-09-21T14:13:25Z"


@given(st.text())
def test_noise_is_refused(text: str) -> None:
    with pytest.raises(NoteRefused):
        cosignature_in(text, TEXT, KEY)
