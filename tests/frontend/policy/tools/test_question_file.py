"""A question out of a file: accepted as it could be asked, or refused with places."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontend.files.problems import Report
from frontend.policy.question import Question
from frontend.policy.tools.question_file import QuestionRefused, parse_question, read_question
from frontend.policy.tools.testing import ORDINARY
from ipc.question import FIELDS

GOOD: dict[str, Any] = json.loads(msgspec.json.encode(ORDINARY.as_input()))
TEXT = json.dumps(GOOD, indent=1)


def problems_of(data: bytes) -> list[str]:
    with pytest.raises(QuestionRefused) as refused:
        parse_question(data, Report("q.json"))
    return [str(problem) for problem in refused.value.problems]


def test_a_question_of_the_gateway_is_accepted_as_it_is() -> None:
    assert parse_question(TEXT.encode(), Report("q.json")) == GOOD


def test_the_fields_are_those_of_a_question() -> None:
    assert list(FIELDS) == list(GOOD)
    assert set(FIELDS) - {"budgets_before"} == set(Question.__struct_fields__) - {"calls_remaining"}


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"owner": null,\n', "", "q.json  owner is missing. Add it: a text or null."),
        ('"owner"', '"ownr"', 'q.json:3  unknown field "ownr". Did you mean owner?'),
        ('"principal": "agent"', '"principal": 3', "q.json:2  principal = 3: must be a text. Write it so."),
        ('"low"', '"lo"', "q.json:10  action_risk_level = \"lo\": must be one of low, medium, high, "),
        ('"digest_ok"', '"good"', 'q.json:11  action_trust_verdict = "good": must be one of digest_ok, '),
        ('"targets": []', '"targets": [1]', "q.json:21  targets = [1]: must be a list of texts. Write it so."),
        ('"calls_remaining": 3', '"calls_remaining": -1', "calls_remaining = -1: must be a whole number"),
        ('"calls_remaining": 3', '"calls_remaining": 1.5', "calls_remaining = 1.5: must be a whole number"),
        ('"calls_remaining": 3', '"calls": 3', "budgets_before = {\"calls\": 3}: must hold calls_remaining and"),
        ('"principal": "agent"', '"principal": "a", "principal": "b"', 'q.json:2  "principal" stands here twice.'),
        ('"agent"', "agent", "q.json:2  this is not JSON: Expecting value."),
        ('"agent"', "NaN", 'q.json  this is not JSON that policy could be asked with: "NaN is not JSON".'),
        ('"request": {}', '"request": {"/a": 9007199254740992}', "must hold numbers of a double, whole ones between"),
        ('"request": {}', '"request": {"/a": ["b", 1e400]}', "must hold numbers of a double, whole ones between"),
        ('"agent"', r'"\ud800"', "q.json  this is not JSON that policy could be asked with: "),
    ],
)  # fmt: skip
def test_what_is_wrong_has_its_line(old: str, new: str, said: str) -> None:
    assert old in TEXT
    assert any(said in problem for problem in problems_of(TEXT.replace(old, new, 1).encode()))


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"[]", "q.json:1  this is no JSON object."),
        (b"", "q.json:1  this is not JSON: Expecting value."),
        (b'{"a": "\xff"}', "q.json:1  this is not UTF-8 text."),
        (b" " * 1_048_577, "q.json  the file is larger than 1048576 bytes."),
        (b"[" * 100_000, "q.json  this is not JSON that policy could be asked with"),
    ],
)
def test_a_file_that_holds_no_object_is_refused(data: bytes, said: str) -> None:
    (problem,) = problems_of(data)
    assert problem.startswith(said)


def test_everything_is_told_at_once_and_a_file_that_is_not_there_too(tmp_path: Path) -> None:
    assert len(problems_of(b'{"x": 1}')) == len(FIELDS) + 1
    with pytest.raises(QuestionRefused, match="cannot be read: No such file or directory"):
        read_question(tmp_path / "none.json")


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner, max_size=2),
    max_leaves=4,
)


@given(
    st.dictionaries(st.sampled_from([*FIELDS, "other"]), VALUES, max_size=4).map(
        lambda changes: json.dumps(GOOD | changes).encode()
    )
    | st.binary(max_size=40)
)
def test_any_bytes_are_a_question_or_problems(data: bytes) -> None:
    problems: list[str] = []
    try:
        fields = parse_question(data, Report("q.json"))
    except QuestionRefused as refused:
        fields, problems = {}, [str(problem) for problem in refused.problems]
    assert bool(problems) is not (set(fields) == set(FIELDS))
    assert not any("\n" in problem for problem in problems)
