import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontend.files.problems import Report
from frontend.manifests.yamltree import MAX_DEPTH, read_tree


def problems_of(text: str) -> list[str]:
    report = Report("f.yaml")
    read_tree(text, report)
    return [str(problem) for problem in report.problems]


def test_scalars_are_those_of_json_and_nothing_else() -> None:
    text = """
    number: 10_000_000
    negative: -3
    float: 2.5
    exponent: 1e3
    yes_and_no: [yes, no, on, off, 1:30, 012, 0x1F, 2026-01-01, .inf, .nan]
    words: [true, False, null, ~]
    quoted: "7"
    empty:
    """
    report = Report("f.yaml")
    tree = read_tree(text, report)
    assert tree is not None
    assert report.problems == []
    assert tree.plain() == {
        "number": 10_000_000, "negative": -3, "float": 2.5, "exponent": 1000.0,
        "yes_and_no": ["yes", "no", "on", "off", "1:30", "012", "0x1F", "2026-01-01", ".inf", ".nan"],
        "words": [True, False, None, None], "quoted": "7", "empty": None,
    }  # fmt: skip


def test_every_value_remembers_its_line() -> None:
    tree = read_tree("a: 1\nb:\n  - x\n  - c:\n      d: 2\n", Report("f.yaml"))
    assert tree is not None
    assert tree.line_at(("a",)) == 1
    assert tree.line_at(("b",)) == 2
    assert tree.line_at(("b", 0)) == 3
    assert tree.line_at(("b", 1, "c", "d")) == 5
    assert tree.line_at(("b", 1, "c", "absent", 7)) == 4


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "f.yaml  the file is empty."),
        ("# only a comment\n", "f.yaml  the file is empty."),
        ("a: 1\nb: 2\na: 3\n", 'f.yaml:3  "a" stands here twice. Keep one; the first is on line 1.'),
        ("a: &x 1\n", "f.yaml:1  an anchor stands here."),
        ("a: 1\nb: *x\n", "f.yaml:2  an alias stands here."),
        ("a: !!python/object/apply:os.system [ls]\n", "f.yaml:1  a tag stands here."),
        ("a: ! b\n", "f.yaml:1  a tag stands here."),
        ("a: 1\n2: b\n", "f.yaml:2  a key is not text."),
        ("[a]: b\n", "f.yaml:1  a key is not text."),
        ("a\n---\nb\n", "f.yaml:2  a second document begins here."),
        ("a: [1\n", "f.yaml:2  not YAML:"),
        ("a: b\n c: d\n", "f.yaml:2  not YAML:"),
        ("a: 1\tb: \x01\n", "f.yaml  not YAML:"),
        ("a: " + "9" * 50, "f.yaml:1  a number is too large."),
        ("a: 1e999", "f.yaml:1  a number is too large."),
    ],
)
def test_what_is_not_plain_yaml_is_a_problem_with_its_line(text: str, problem: str) -> None:
    assert problems_of(text)[0].startswith(problem)


def test_all_problems_of_a_text_are_seen_at_once() -> None:
    assert len(problems_of("a: &x 1\nb: *x\nc: !t 1\nc: 2\n")) == 4


def test_depth_is_bounded_before_anything_else_is() -> None:
    assert problems_of("[" * 200_000) == [f"f.yaml:1  values are nested deeper than {MAX_DEPTH}. Flatten them."]
    assert problems_of("- " * 60 + "x") == []


def test_an_alias_bomb_costs_nothing() -> None:
    levels = ["a0: &a0 [x, x]"] + [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 30)]
    assert len(problems_of("\n".join(levels))) > 30


@given(st.text(max_size=200) | st.text("ab:{}[]-?&*!|>'\"#%@ \n\t0159.", max_size=80))
def test_any_text_gives_a_tree_or_a_problem(text: str) -> None:
    report = Report("f.yaml")
    tree = read_tree(text, report)
    assert tree is not None or report.problems


def test_a_text_that_ends_too_early_is_told_at_its_last_line() -> None:
    report = Report("f")
    assert read_tree("a: 1\nb: {", report) is None
    assert [problem.line for problem in report.problems] == [2]
