"""Notes and checkpoints as texts: what has the one form that C2SP gives them, and what is refused for another."""

from base64 import b64encode

import pytest

from notary.tree.checkpoint import MAX_NOTE, Checkpoint, NoteRefused, parted, tree_head

ROOT = bytes(range(32))
MADE = Checkpoint("gate.example/log", 3, ROOT, "2026-11-23T05:00:00.000Z", 2)
LINE = f"— gate.example/log {b64encode(b'id__' + b's' * 64).decode()}\n"
NOTE = f"{MADE.text}\n{LINE}"


def filled(characters: int) -> str:
    """A signed note of so many characters."""
    rest = characters - len(f"\n\n{LINE}")
    return f"{'x' * rest}\n\n{LINE}"


def test_a_checkpoint_is_read_as_it_was_written() -> None:
    assert MADE.text == (
        f"gate.example/log\n3\n{b64encode(ROOT).decode()}\ntime=2026-11-23T05:00:00.000Z unresolved=2\n"
    )
    assert Checkpoint.parse(MADE.text) == MADE


def test_a_checkpoint_of_another_log_has_extension_lines_of_its_own_and_none_is_lost() -> None:
    head, extension = tree_head("other\n0\n" + b64encode(ROOT).decode() + "\none\ntwo\n")
    assert (head.origin, head.size, head.root, extension) == ("other", 0, ROOT, "one\ntwo\n")


@pytest.mark.parametrize(
    "text",
    [
        MADE.text[:-1], MADE.text.replace("gate.example/log", "gate example"), MADE.text.replace("\n3\n", "\n03\n"),
        MADE.text.replace("\n3\n", "\n-3\n"), MADE.text.replace("\n3\n", "\n\n"), MADE.text.replace("\n3\n", "\n3a\n"),
        MADE.text + "one more line\n", MADE.text.replace("unresolved=2", "unresolved=02"), "", "\n",
        "gate.example\n3\n",
        MADE.text.replace(b64encode(ROOT).decode(), b64encode(ROOT[1:]).decode()),
        MADE.text.replace(b64encode(ROOT).decode(), b64encode(ROOT).decode()[:-2] + "9="),
        MADE.text.replace(b64encode(ROOT).decode(), "*" + b64encode(ROOT).decode()[1:]),
        MADE.text.replace(".000Z", "Z"),
    ],
)  # fmt: skip
def test_any_other_text_is_no_checkpoint(text: str) -> None:
    with pytest.raises(NoteRefused):
        Checkpoint.parse(text)


def test_a_note_is_parted_into_its_text_and_who_signed_what() -> None:
    assert parted(NOTE) == (MADE.text, [("gate.example/log", b"id__", b"s" * 64)])
    assert len(parted(NOTE + LINE)[1]) == 2


@pytest.mark.parametrize(
    "note",
    [
        MADE.text, LINE, NOTE[:-1], NOTE.replace("gate.example/log\n", "gate.example/log\t\n"), NOTE + "\n",
        NOTE.replace("— ", "- "), NOTE.replace("— gate.example/log", "— gate+example"),
        f"{MADE.text}\n— gate.example/log {b64encode(b'id__').decode()}\n", f"{MADE.text}\n— gate.example/log\n",
        f"{MADE.text}\n— gate.example/log {b64encode(b's' * 68).decode()[:-1]}\n", filled(MAX_NOTE + 1),
    ],
)  # fmt: skip
def test_any_other_text_is_no_note(note: str) -> None:
    with pytest.raises(NoteRefused):
        parted(note)


def test_a_note_of_the_largest_size_is_read_and_a_signature_of_one_byte_is_one() -> None:
    assert parted(filled(MAX_NOTE))[1] == parted(NOTE)[1]
    short = f"— gate.example/log {b64encode(b'id__s').decode()}\n"
    assert parted(f"{MADE.text}\n{short}")[1] == [("gate.example/log", b"id__", b"s")]
