"""Rego that the evaluator takes and Rego v1 does not is refused with its line."""

import pytest

from tests.support.policy import DEFAULT_POLICY, HEADER
from workers.rego.evaluator import CompiledPolicy, PolicyError
from workers.rego.form import form_problems


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ('d if { input.owner == "b") }', "5: this ) does not close the { of line 5"),
        ('d if {\n input.owner == "b"\n]\n}', "7: this ] does not close the { of line 5"),
        ("d if { true }\n}", "6: this } closes nothing"),
        ('d {\n input.owner == "b"\n}', "5: the body of this rule has no `if` before it"),
        ("d := 1 if {\n true\n} else := 2 {\n true\n}", "7: the body of this rule has no `if` before it"),
        ("d contains x {\n x := 1\n}", "5: the body of this rule has no `if` before it"),
        ("f(x) := 2 {\n x == 1\n}", "5: the body of this rule has no `if` before it"),
        ("d\n", "5: this rule has neither a value nor `if`: it would always hold"),
        (
            "d := 1 if {\n true\n} esle := 2 if {\n true\n}",
            "7: a rule must begin on a line of its own: `esle` stands where `else` may stand",
        ),
    ],
)
def test_syntax_that_rego_v1_refuses_is_refused_with_its_line(body: str, said: str) -> None:
    with pytest.raises(PolicyError) as refused:
        CompiledPolicy({"gateway.rego": f"{HEADER}{body}\n\ndecision := 1\n"}, "{}")
    assert refused.value.problems == [f"gateway.rego:{said}"]


@pytest.mark.parametrize(
    "body",
    [
        'd := {\n "a": 1,\n} if {\n true\n} else := {"b": 2} if {\n true\n} else := {\n "c": 3 }',
        'default e := {"x": 1}\ndefault f(_) := 3\nf(1) := {x | some x in input.scopes} if input.owner\n  == "b"',
        'd contains {"a": 1} if { true }\nd contains x if some x in\n {1}',
        'd.a.b := 1 if { true }\nd.a.c := "}"',
        "d := {1} | {2} # )\ne := x if\n{\n x := 1\n}",
        "every_one if {\n every x in input.scopes {\n  x != `)`\n }\n}",
    ],
)
def test_syntax_of_rego_v1_is_accepted(body: str) -> None:
    assert form_problems({"gateway.rego": f"{HEADER}{body}\n"}) == []


def test_the_default_policy_has_the_form() -> None:
    folder = DEFAULT_POLICY.parent
    assert form_problems({path.name: path.read_text() for path in folder.glob("*.rego")}) == []
