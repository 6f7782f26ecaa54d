"""Signed notes: opened by a signature that holds, by a known key, under its name, and by nothing else."""

from base64 import b64encode

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from ipc.keys.verifier_keys import key_id
from ipc.network.loopback import origin_of
from notary.tree.checkpoint import Checkpoint, NoteRefused
from notary.tree.notes import opened, opened_checkpoint, read_verifier_key, signed, verifier_key

NAME = "gate.example"
KEY, OTHER = (Ed25519PrivateKey.from_private_bytes(one * 32) for one in (b"k", b"o"))
KEYS = {NAME: (KEY.public_key(),)}
MADE = Checkpoint(NAME, 3, bytes(32), "2026-11-23T05:00:00.000Z", 0)
NOTE = signed(MADE.text, NAME, KEY)


def by_hand(signature: bytes, name: str = NAME) -> str:
    """A note whose signature says that it is by KEY."""
    identified = key_id(NAME, KEY.public_key().public_bytes_raw()) + signature
    return f"{MADE.text}\n— {name} {b64encode(identified).decode()}\n"


def test_a_note_is_opened_by_any_of_its_signatures_that_holds() -> None:
    assert opened(NOTE, KEYS) == MADE.text
    assert by_hand(KEY.sign(MADE.text.encode())) == NOTE
    assert opened(NOTE, {NAME: (OTHER.public_key(), KEY.public_key())}) == MADE.text
    both = signed(MADE.text, "other", OTHER) + NOTE.rpartition("\n\n")[2]
    assert opened(both, KEYS) == MADE.text
    assert opened_checkpoint(both, [KEY.public_key()]) == MADE


@pytest.mark.parametrize(
    "note",
    [
        by_hand(KEY.sign(MADE.text.encode())[:-1]), by_hand(KEY.sign(MADE.text.encode()) + b"\0"),
        by_hand(KEY.sign(b"another text")), by_hand(OTHER.sign(MADE.text.encode())),
        by_hand(KEY.sign(MADE.text.encode()), "other"), signed(MADE.text, NAME, OTHER),
        NOTE.replace("\n3\n", "\n4\n"),
    ],
)  # fmt: skip
def test_no_other_note_is_opened(note: str) -> None:
    with pytest.raises(NoteRefused):
        opened(note, KEYS)
    with pytest.raises(NoteRefused):
        opened_checkpoint(note, [KEY.public_key()])


def test_a_checkpoint_is_signed_under_the_name_of_its_own_log() -> None:
    with pytest.raises(NoteRefused):
        opened_checkpoint(signed(MADE.text, "other", KEY), [KEY.public_key()])


def test_a_verifier_key_is_read_as_it_was_written() -> None:
    assert read_verifier_key(verifier_key(NAME, KEY.public_key())) == (NAME, KEY.public_key())
    with pytest.raises(NoteRefused):
        read_verifier_key(verifier_key(NAME, KEY.public_key())[:-4])


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("https://Gate.Example:8443/", "gate.example:8443"), ("http://localhost", "localhost"),
        ("https://gate.example/Path/", "gate.example/Path"), ("https://[::1]:1/a b+c", "[::1]:1/a%20b%2Bc"),
    ],
)  # fmt: skip
def test_a_log_is_named_by_the_gateways_address_without_its_scheme(url: str, origin: str) -> None:
    assert origin_of(url) == origin
