"""Answers are made strictly: a client that tolerates more does not let the gateway send less."""

from typing import Annotated, Any

import msgspec
import pytest

from contract.noun import NEVER_NULL, Listed, NeverNull, Noun, shown_as
from frontend.contract.answers import answer_of


class Box(msgspec.Struct, frozen=True, kw_only=True):
    """A part of Sample."""

    width: int


class Sample(Noun, frozen=True, kw_only=True):
    """A noun with each kind of field."""

    name: str
    number: NeverNull[int]
    many: Listed[str]
    empty: str | None
    box: Annotated[dict[str, Any] | None, NEVER_NULL, shown_as(Box)]
    boxes: Annotated[tuple[Any, ...], NEVER_NULL, shown_as(Box)]
    lid: Annotated[dict[str, Any], shown_as(Box)] | None


WHOLE: dict[str, Any] = {
    "name": "a", "number": 1, "many": ["b"], "empty": None, "box": {"width": 2}, "boxes": [{"width": 3}],
    "lid": {"width": 4},
}  # fmt: skip


def test_what_is_declared_goes_out_whole_and_nothing_else() -> None:
    more = {"box": {"width": 2, "secret": "x"}, "boxes": [{"width": 3, "secret": "x"}], "lid": {"width": 4, "key": "x"}}
    answer = answer_of(Sample, WHOLE | more | {"undeclared": 1, "raw": {"secret": 1}})
    assert msgspec.json.decode(msgspec.json.encode(answer)) == WHOLE


@pytest.mark.parametrize("name", WHOLE)
def test_a_member_that_is_missing_is_refused(name: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=f"missing required field `{name}`"):
        answer_of(Sample, {one: value for one, value in WHOLE.items() if one != name})


@pytest.mark.parametrize("name", ["name", "number", "many", "box", "boxes"])
def test_a_member_that_is_never_null_is_refused_as_null(name: str) -> None:
    with pytest.raises(msgspec.ValidationError):
        answer_of(Sample, WHOLE | {name: None})


@pytest.mark.parametrize(
    "wrong",
    [{"number": "1"}, {"many": [1]}, {"box": {}}, {"box": {"width": "2"}}, {"boxes": [{}]}, {"lid": {"width": None}}],
)
def test_a_member_of_another_type_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError):
        answer_of(Sample, WHOLE | wrong)


def test_a_member_that_may_be_null_goes_out_as_null() -> None:
    nulls = {"empty": None, "lid": None}
    assert msgspec.json.decode(msgspec.json.encode(answer_of(Sample, WHOLE | nulls))) == WHOLE | nulls
