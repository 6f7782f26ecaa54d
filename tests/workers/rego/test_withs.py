"""`with`: what the evaluator would drop or die of is refused, what it does right is taken, and does what it says."""

import pytest

from workers.rego.evaluator import CompiledPolicy, PolicyError
from workers.rego.withs import blanked, with_problems

HEAD = "package gateway\n\nimport rego.v1\n\n"
DECISION = 'decision := {"rule": input.principal, "n": data.n}\n\nd := {"a": 1}\n\nf(x) := x\n\n'


def problems(body: str) -> list[str]:
    return with_problems({"a_test.rego": HEAD + DECISION + body + "\n"})


@pytest.mark.parametrize(
    "expression",
    [
        'decision.rule with input.principal as "b"',
        'decision.rule with input["principal"] as "b"',
        'decision.rule with input.principal as concat("", ["b"])',
        'decision.rule with input.principal as f("b")',
        "decision.n with data.n as {\"rule\": d.a}",
        "decision.n with data.n as 1 - 1 with input.principal as `b`",
        "decision.n with data.n as null",
        "decision.n with data.n as [1, 2] # with input as d",
        '"x with input as d"',
    ],
)  # fmt: skip
def test_correctly_evaluated_syntax_is_accepted(expression: str) -> None:
    assert problems(f"t := {expression}") == []


@pytest.mark.parametrize(
    "body",
    [
        "t if {\n\tv := d\n\tdecision.n with data.n as v\n}",
        "t if {\n\tsome v in [1]\n\tdecision.n with data.n as v\n}",
        "t if {\n\tevery v in [{}] {\n\t\tdecision.n with data.n as v.a\n\t}\n}",
        "t(v) if {\n\tdecision.n with data.n as v[0]\n}",
        "t := [x | some k, v in d; x := decision.n with data.n as v]",
    ],
)
def test_a_variable_of_the_rule_is_a_value(body: str) -> None:
    assert problems(body) == []


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("decision with input as d", "this evaluator can't replace all of input"),
        ('decision with input as {"principal": "b"}', "this evaluator can't replace all of input"),
        ("decision with data as d", "this evaluator can't replace all of data"),
        ("decision with data.n[input.x] as 1", "an index behind `with` must be a text in quotes: data.n[input.x]"),
        ("decision with data.n as d", "this evaluator forgets a `with` whose value is d"),
        ("decision with data.n as (d)", "this evaluator forgets a `with` whose value is d"),
        ("decision with data.n as data.gateway.d", "this evaluator forgets a `with` whose value is data.gateway.d"),
        ("decision with input.principal as input.owner", "this evaluator forgets a `with` whose value is input.owner"),
        ("decision with data.n as misspelt with data.m as 1", "forgets a `with` whose value is misspelt"),
        ("[x | x := decision with data.n as d]", "this evaluator forgets a `with` whose value is d"),
    ],
)
def test_syntax_that_the_evaluator_drops_or_dies_of_is_refused_with_its_line(expression: str, said: str) -> None:
    (problem,) = problems(f"t := x if {{\n\tx := {expression}\n}}")
    assert problem.startswith("a_test.rego:12: ")
    assert said in problem


def test_a_policy_with_such_a_with_is_refused_before_it_is_compiled() -> None:
    with pytest.raises(PolicyError) as refused:
        CompiledPolicy({"p.rego": HEAD + "decision := x if {\n\tx := data.gateway.a with input as d\n}\n"}, "{}")
    assert refused.value.problems[0].startswith("p.rego:6: this evaluator can't replace all of input")


def test_accepted_syntax_has_its_documented_effect() -> None:
    body = """t := [x.rule, x.n, y.n] if {
	v := d
	x := decision with input.principal as "b" with data.n as v
	y := decision
}
"""
    policy = CompiledPolicy({"p.rego": HEAD + DECISION + body}, '{"n": 0}', ["gateway/t"])
    assert policy.value({"principal": "a"}, "gateway/t") == '["b",{"a":1},0]'
    assert policy.value({"principal": "a"}, "gateway/decision") == '{"n":0, "rule":"a"}'


def test_every_character_stays_where_it_was() -> None:
    source = 'a := "b # c" # d "e"\nf := `g\nh` # i'
    plain = blanked(source)
    assert len(plain) == len(source)
    assert plain == 'a := "....." ' + " " * 7 + "\nf := `.\n.` " + " " * 3
