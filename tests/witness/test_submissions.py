"""Requests to a witness, from bytes to their parts."""

from base64 import b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notary.tree.checkpoint import NoteRefused, TreeHead
from witness.submissions import MAX_BODY, MAX_PROOF, parse

ROOT = b"r" * 32
HASH = b64encode(b"h" * 32).decode()
TEXT = f"log.example/a\n7\n{b64encode(ROOT).decode()}\n"
NOTE = f"{TEXT}\n\N{EM DASH} log.example/a AAAAAAAAAAA=\n"
BODY = f"old 3\n{HASH}\n{HASH}\n\n{NOTE}"


def test_a_request_is_taken_apart() -> None:
    asked = parse(BODY.encode())
    assert asked.head == TreeHead("log.example/a", 7, ROOT)
    assert (asked.old_size, asked.proof, asked.note, asked.text) == (3, (b"h" * 32,) * 2, NOTE, TEXT)
    assert parse(f"old 0\n\n{NOTE}".encode()).proof == ()
    extended = NOTE.replace("\n\n", "\nwhat its log says besides\nand more\n\n")
    assert parse(f"old 7\n\n{extended}".encode()).head.size == 7


@pytest.mark.parametrize(
    "body",
    ["", "\n\n", NOTE, f"old 3\n{NOTE}", BODY.replace("old 3", "old 03"), BODY.replace("old 3", "old -1"),
     BODY.replace("old 3", "Old 3"), BODY.replace("old 3", "old 3 "), BODY.replace("old 3", "old 8"),
     BODY.replace("old 3", "old " + "9" * 19), BODY.replace(HASH, HASH[:-4]), BODY.replace(HASH, HASH + " "),
     BODY.replace(HASH, ""), BODY.replace("\n7\n", "\n07\n"), BODY.replace("\n7\n", "\nx\n"),
     BODY.replace("log.example/a\n7", "log example\n7"), BODY[:-1], BODY + "x", BODY + "\n",
     BODY.replace("\N{EM DASH} ", "-- "), f"old 3\n{HASH}\n\n{TEXT}", BODY.replace("log.example", "log\x00example"),
     "old 3\n" + f"{HASH}\n" * (MAX_PROOF + 1) + "\n" + NOTE, f"old 3\n\n{NOTE}" + "x" * 20_000 + "\n"],
)  # fmt: skip
def test_what_is_no_request_is_refused_with_a_sentence(body: str) -> None:
    with pytest.raises(NoteRefused) as refused:
        parse(body.encode())
    assert str(refused.value)


def test_bytes_that_are_no_text_are_refused() -> None:
    with pytest.raises(NoteRefused, match="UTF-8"):
        parse(BODY.encode() + b"\xff")


def test_the_largest_request_fits_into_what_is_read() -> None:
    largest = "old 999999999999999999\n" + f"{HASH}\n" * MAX_PROOF + "\n" + "\N{EM DASH}" * 16_384
    assert len(largest.encode()) <= MAX_BODY


TEXTS = st.one_of(st.text(), st.text().map(lambda text: f"old 1\n{text}\n\n{NOTE}"))


@given(st.one_of(st.binary(), TEXTS.map(str.encode)))
def test_noise_is_refused_or_read(body: bytes) -> None:
    try:
        asked = parse(body)
    except NoteRefused:
        return
    assert asked.head.size >= asked.old_size >= 0
