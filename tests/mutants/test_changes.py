"""What is changed in a source, and what is not."""

import pytest

from mutants import accepted, rooms
from mutants.changes import changes_of


def after(source: str) -> list[str]:
    """The line of each change as it reads then."""
    return [change.after for change in changes_of("room/file.py", source.encode())]


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        ("RATES = {'lease': 50}", ['RATES = {"lease_": 50}', "RATES = {'lease': 51}"]),
        ("KEPT_SECONDS = 30.0", ["KEPT_SECONDS = 300.0"]),
        ("ZERO = 0.0", ["ZERO = 1.0"]),
        ("IS = True", ["IS = False"]),
        ("a = b <= c", ["a = b < c"]),
        ("a = b is not None", ["a = b is None"]),
        ("a = b not in c", ["a = b in c"]),
        ("a = b and c and d", ["a = b or c and d", "a = b and c or d"]),
        ("a = not b", ["a = b"]),
        ("def f():\n    return a", ["return None"]),
        ("def f(a=1):\n    pass", ["def f(a=2):"]),
        ("def f():\n    return (\n        a\n    )", ["None"]),
    ],
)
def test_a_mistake_of_each_kind_is_made(source: str, wanted: list[str]) -> None:
    assert after(source) == wanted


@pytest.mark.parametrize(
    "source",
    [
        '"""said"""', "def f():\n    'said'", "A: Literal['x']", "assert a > 1", "@d(frozen=True)\ndef f(): pass",
        "class C(S, frozen=True): pass", "say('more than one word')", "__all__ = ['name']", "def f():\n    return None",
        "def f():\n    return",
    ],
)  # fmt: skip
def test_texts_annotations_and_declarations_stay_as_they_are(source: str) -> None:
    assert after(source) == []


def test_bytes_are_counted_where_a_line_holds_more_than_ascii() -> None:
    assert after("é = 'ü ü' if ä == 1 else 2") == [
        "é = 'ü ü' if ä != 1 else 2", "é = 'ü ü' if ä == 2 else 2", "é = 'ü ü' if ä == 1 else 3",
    ]  # fmt: skip


def test_a_change_has_a_name_that_outlives_edits_elsewhere_and_no_other_has_it() -> None:
    source = "class C:\n    def f(self):\n        if a:\n            x = 1\n        else:\n            x = 1\n"
    names = [change.name for change in changes_of("room/file.py", source.encode())]
    assert names == ["room/file.py C.f: x = 1 => x = 2", "room/file.py C.f #2: x = 1 => x = 2"]
    assert [change.name for change in changes_of("room/file.py", b"import os\n\n\n" + source.encode())] == names


@pytest.fixture(scope="module")
def names() -> list[str]:
    """Of every change of the rooms."""
    return [
        change.name for file in rooms.files() for change in changes_of(file, (rooms.ROOT / file).read_bytes())
    ]  # fmt: skip


@pytest.mark.large
def test_every_file_of_the_rooms_has_tests_and_changes_with_names_of_their_own(names: list[str]) -> None:
    for file in rooms.files():
        assert all((rooms.ROOT / test).is_file() for part in rooms.tests_of(file) for test in part), file
        assert rooms.tests_of(file), file
    assert len(names) == len(set(names)) > 2000


@pytest.mark.large
def test_what_is_accepted_exists_and_says_why(names: list[str]) -> None:
    accepts = accepted.read(accepted.LIST.read_text())
    assert set(accepts) <= {*names}
    assert all(len(why) > 20 and why.endswith(".") for why in accepts.values())


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a b: c => d\n", "no sentence"), ("a => b\nc => d\n", "no sentence"), ("  Why.\n", "without a change"),
        ("a\n  Why.\na\n  Why.\n", "twice"),
    ],
)  # fmt: skip
def test_a_list_that_does_not_say_why_is_refused(text: str, problem: str) -> None:
    with pytest.raises(accepted.ListRefused, match=problem):
        accepted.read(text)
