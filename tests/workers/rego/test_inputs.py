"""A rule that reads a field which no question has is refused, with its line and the nearest field."""

import pytest

from frontend.policy.question import ATTRIBUTES
from frontend.policy.tools.testing import ORDINARY
from ipc.question import FIELDS
from tests.support.policy import HEADER, document
from workers.rego.candidate import candidate
from workers.rego.deadline import Deadline
from workers.rego.evaluator import PolicyError
from workers.rego.probe import probe_inputs

REST = f"\n\ndecision := {document()} if d\n\ndecision := {document()} if not d\n"
UNKNOWN = "no question has this field; the nearest is input.action_id"


def problems(body: str) -> list[str]:
    """Return the reason why the policy is refused."""
    try:
        candidate({"gateway.rego": HEADER + body + REST}, '{"policy_version": "1"}', Deadline())
    except PolicyError as error:
        return error.problems
    return []


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ('d if input.actionid == "a"', f"5: input.actionid: {UNKNOWN}"),
        ('d if {\n\tinput["actionid"]\n}', f"6: input.actionid: {UNKNOWN}"),
        ('d if object.get(input, "actionid", 1) == 1', f"5: input.actionid: {UNKNOWN}"),
        ("import input.actionid\n\nd if actionid", f"5: input.actionid: {UNKNOWN}"),
        ('d if input.principal with input.actionid as "x"', f"5: input.actionid: {UNKNOWN}"),
        ("d if {\n\tx := input\n\tx.actionid\n}", f"7 (data.gateway.d): input.actionid: {UNKNOWN}"),
        ("import input as i\n\nd if i.actionid", f"7 (data.gateway.d): input.actionid: {UNKNOWN}"),
        (
            "d if input.budgets_before.calls_left == 1",
            "5: input.budgets_before.calls_left: " + UNKNOWN.replace("action_id", "budgets_before.calls_remaining"),
        ),
        ("d if input.owner.name", "5: input.owner.name: input.owner is a text or null, which has no members"),
    ],
)
def test_a_field_that_no_question_has_is_refused_with_its_line(body: str, said: str) -> None:
    assert problems(body) == [f"gateway.rego:{said}"]


@pytest.mark.parametrize(
    "body",
    [
        'd if input.scopes[0] == "a"',
        'd if input.budgets_before["calls_remaining"] == 3',
        'd if input.owner == "input.actionid" # input.actionid',
        "d if { some name; input[name] }",
        "d if data.input.actionid",
    ],
)
def test_fields_that_questions_have_are_read_in_any_way(body: str) -> None:
    assert problems(body) == []


def test_every_question_has_exactly_these_fields() -> None:
    assert list(ORDINARY.as_input()) == list(FIELDS)
    assert set(ATTRIBUTES) == set(FIELDS)
    assert {tuple(asked) for _, asked in probe_inputs("{}")} == {tuple(FIELDS)}
