"""Trials on a small tree of their own: what is found, what survives, and what never ends."""

import subprocess
from pathlib import Path

import pytest

from mutants.changes import Change, changes_of
from mutants.kept import COLLECTION, DEADLINE, SURVIVED, Kept
from mutants.lines import lines_around, lines_using
from mutants.trials import NotRun, _hopeful_first, trials

SOURCE = """
LIMIT = 3

def is_over(count):
    return count > LIMIT

def unnoticed():
    return 7.0

def never_run():
    return 8.0

def count_down(count):
    while count > 0:
        count = count - 1
    return count
"""
MORE = """
X = (
    1,
)

class C:
    def f(self, a=1):
        if (
            a
        ):
            b = [
                X,
            ]
        elif b:
            pass
        return b
"""
TEST = """
from small import LIMIT, count_down, is_over

def test_it():
    assert [is_over(count) for count in (3, 4)] == [False, True]

def test_down():
    assert count_down(2) == 0

def test_is_red_without_any_change():
    assert LIMIT == 9
"""


def line_of(text: str) -> int:
    """Where it stands in the source, from 1."""
    return 1 + next(number for number, line in enumerate(SOURCE.splitlines()) if text in line)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A repository with one file and its test."""
    root = tmp_path / "checkout"
    (root / "tests").mkdir(parents=True)
    (root / ".venv").mkdir()
    (root / "small.py").write_text(SOURCE)
    (root / "pytest.ini").write_text("[pytest]\npythonpath = .\n")
    (root / "tests" / "test_small.py").write_text(TEST)
    subprocess.run(["git", "init", "-q"], cwd=root, check=True, timeout=60)
    return root


def test_trials_tell_what_found_each_change_and_leave_the_checkout_alone(tree: Path) -> None:
    source = (tree / "small.py").read_bytes()
    changes = changes_of("small.py", source)
    with trials(tree, 2) as ready:
        before = ready.baseline(("tests",), ["small.py"])
        assert {name for name in before.seconds if "::" not in name} == {"tests/test_small.py"}
        assert before.failed == ["tests/test_small.py::test_is_red_without_any_change"]
        down = "tests/test_small.py::test_down"
        assert before.lines.tests_of("small.py", [line_of("while count")]) == {down}
        assert down in before.seconds
        arguments = ["tests/test_small.py", f"--deselect={before.failed[0]}"]
        tests = {change.name: [] if "8.0" in change.before else [arguments] for change in changes}
        caught_by = {change.after: by for change, by in ready.run(changes, tests, before.seconds)}
    assert caught_by["return count >= LIMIT"] == caught_by["LIMIT = 4"] == "tests/test_small.py::test_it"
    assert caught_by["return 70.0"] == caught_by["return 80.0"] == SURVIVED
    assert len(caught_by) == len({change.after for change in changes})
    assert (tree / "small.py").read_bytes() == source
    assert not list(tree.rglob("__pycache__"))


@pytest.mark.parametrize(
    ("instead", "usual"), [("0", -1.8), ("__import__('signal').pause()", -11.6)], ids=["works", "waits"]
)
def test_a_change_that_makes_the_tests_run_for_ever_is_found_by_the_deadline(
    tree: Path, instead: str, usual: float
) -> None:
    (endless,) = (one for one in changes_of("small.py", (tree / "small.py").read_bytes()) if "count - 1" in one.before)
    endless = Change(**{**vars(endless), "text": instead})
    with trials(tree, 1) as ready:
        ready.baseline(("tests",))
        test = "tests/test_small.py::test_down"
        assert [by for _, by in ready.run([endless], {endless.name: [[test]]}, {test: usual})] == [DEADLINE]


@pytest.mark.parametrize(
    "begin",
    ['import os\n\nSEPARATOR = getattr(os, "sep")', 'import sys\n\nif __name__ == "the main one":\n    sys.exit(2)'],
    ids=["raises", "exits"],
)
def test_a_change_with_which_the_tests_can_not_be_loaded_is_found_by_that(tree: Path, begin: str) -> None:
    (tree / "small.py").write_text(f"{begin}\n{SOURCE}")
    (tree / "tests" / "conftest.py").write_text("import small\n")
    spoilt, *_ = changes_of("small.py", (tree / "small.py").read_bytes())
    with trials(tree, 1) as ready:
        ready.baseline(("tests",))
        tests = {spoilt.name: [["tests/test_small.py"]]}
        assert [by for _, by in ready.run([spoilt], tests, {})] == [COLLECTION]


def test_tests_that_can_not_be_run_are_no_find(tree: Path) -> None:
    with trials(tree, 1) as ready, pytest.raises(NotRun):
        ready.baseline(("tests/test_missing.py",))


def test_an_outcome_holds_until_its_file_or_what_found_it_changes(tree: Path) -> None:
    first, second, *_ = changes_of("small.py", (tree / "small.py").read_bytes())
    by = "tests/test_small.py::test_it"
    kept = Kept(tree / "build" / "outcomes.jsonl", tree)
    kept.note(first, by)
    kept.note(second, SURVIVED)

    def known() -> list[bool]:
        again = Kept(tree / "build" / "outcomes.jsonl", tree)
        return [again.outcome(change) is not None for change in (first, second)]

    assert known() == [True, True]
    (tree / "tests" / "test_more.py").write_text("")
    assert known() == [True, False], "another test may notice what none did"
    (tree / "tests" / "test_small.py").write_text(TEST + "\n")
    assert known() == [False, False]
    (tree / "tests" / "test_small.py").write_text(TEST)
    assert known() == [True, False]
    (tree / "small.py").write_text(SOURCE + "\n")
    assert known() == [False, False]


def test_what_found_the_last_change_of_a_file_is_asked_first_and_nothing_is_left_out() -> None:
    parts = [["a", "d", "--deselect=x"], ["b", "c", "--deselect=x"]]
    assert _hopeful_first(parts, None) == _hopeful_first(parts, DEADLINE) == parts
    assert _hopeful_first(parts, "c") == [["c", "--deselect=x"], ["a", "d", "--deselect=x"], ["b", "--deselect=x"]]
    assert _hopeful_first(parts, "d") == [["d", "a", "--deselect=x"], ["b", "c", "--deselect=x"]]


def test_a_test_that_fills_the_stack_is_not_thought_to_leave_out_what_it_ran_afterwards(tree: Path) -> None:
    lines = ("def deep(n):", "    return 1 + deep(n)", "", "def kept():", "    try:", "        return deep(0)",
             "    except RecursionError:", "        return 9.5")  # fmt: skip
    (tree / "small.py").write_text("\n".join(lines))
    (tree / "tests" / "test_small.py").write_text("import small\n\ndef test_it():\n    assert small.kept() == 9.5\n")
    with trials(tree, 1) as ready:
        before = ready.baseline(("tests",), ["small.py"])
    assert before.lines.tests_of("small.py", [len(lines)]) == {"tests/test_small.py::test_it"}


def test_a_change_belongs_to_the_lines_of_its_statement_alone() -> None:
    around = [lines_around(MORE.encode(), number) for number in range(1, MORE.count("\n") + 1)]
    assert around[:7] == [None] * 7
    assert around[7:10] == [{8, 9, 10}] * 3
    assert around[10:13] == [{11, 12, 13}] * 3
    assert around[13:] == [{14}, {15}, {16}]


@pytest.mark.parametrize(
    ("more", "lines"),
    [
        ("", {11, 12, 13}), ("Y = X", None), ("from other import X as Z", None), ("def g(a=X): pass", None),
        ("def g():\n    return other.X", {11, 12, 13, 18}),
    ],
)  # fmt: skip
def test_a_change_of_a_constant_belongs_to_its_uses_and_to_every_test_where_others_are_made_of_it(
    more: str, lines: set[int] | None
) -> None:
    assert lines_using(f"{MORE}{more}".encode(), "X") == lines
