"""A policy that the evaluator would quietly read otherwise than its author meant does not compile."""

import json

import pytest

from tests.support.policy import HEADER
from workers.rego.evaluator import CompiledPolicy, PolicyError

SOUND = {
    "comprehension": "decision := [y | some x in input.b; y := x + 1]",
    "nested comprehension": "decision := [z | some x in input.b; z := [w | some y in input.b; w := x + y]]",
    "every with index": "decision if { every i, x in input.b { x > i; x > 0 } }",
    "with input": "x if input.a == 2\n\ndecision if { x with input.a as 2 }",
    "with data": "x if data.foo == 2\n\ndecision if { x with data.foo as 2 }",
    "function": "f(x, y) := x + y\n\ndecision := f(1, 2)",
    "function by pattern": 'f([x, y], {"k": z}) := (x + y) + z\n\ndecision := f([1, 2], {"k": 3})',
    "function by value": 'f("a") := 1\n\nf("b") := 2\n\ndecision := f("a")',
    "default function": "default f(_) := 1\n\nf(x) := 2 if x == 9\n\ndecision := f(1)",
    "else": "decision := 1 if {\n\tinput.a == 5\n} else := 2 if {\n\tinput.a == 1\n} else := 3",
    "index": "decision := v if { some i; v := input.b[i]; i == 1 }",
    "any index": "decision if input.b[_] == 2",
    "partial set": "s contains x if { some x in input.b; x > 1 }\n\ndecision := s",
    "partial object": "o[k] := v if { some k, v in input.o }\n\ndecision := o",
    "not in a set": "s contains x if { some x in input.b; x > 1 }\n\ndecision if not 7 in s",
    "not of a member": "decision if not data.foo[input.a]",
    "not of a function": "f(x) if x == 1\n\ndecision if not f(2)",
    "not before the assignment": "decision := x if { not x == 9; x := input.a }",
    "not in a comprehension": "decision := {x | some x in input.b; not x in {1, 2}}",
    "array pattern": "decision := x if { [x, _, _] := input.b }",
    "unification": "decision := x if { x = 1 }",
    "walk": "decision := [p | walk(input.o, [p, 1])]",
    "default": "default x := false\n\nx if input.a == 9\n\ndecision := x",
    "sets": "a := {1, 2}\n\nb := {2}\n\ndecision := [a - b, a & b, a | b]",
    "closure": "decision := s if { t := 1; s := {x | some x in input.b; x > t} }",
    "unused rule": "unused if input.q == 1\n\ndecision := 1",
    "object comprehension": "decision := {k: v | some k, v in input.o}",
}

UNSET = {
    "misspelt rule behind not": ("is_known if input.a\n\ndecision if not is_knwon", '"is_knwon" in "if not is_knwon"'),
    "misspelt rule": ("decision if is_knwon", "is_knwon"),
    "misspelt value": ("decision := nope", "gateway.rego:5 (data.gateway.decision)"),
    "misspelt variable": ("decision := y if { x := 1; x > 0 }", "y"),
    "misspelt comparison": ("decision if not x == 1", "x == 1"),
    "misspelt argument": ("f(_) := 1\n\ndecision := f(zz)", "zz"),
    "misspelt collection": ("decision if not 1 in known", "known"),
    "misspelt reference": ("decision if not known.x.y", "known"),
    "in a rule nobody uses": ("a if not known\n\ndecision := 1", "known"),
    "in a comprehension": ("decision := [y | some x in input.b; x > 1]", "never gets a value"),
    "in an every": ("decision if { every x in input.b { x > limit } }", "limit"),
    # Sound Rego that this evaluator compiles to something else: true, whatever the members are.
    "not inside every": ("decision if { every x in input.b { not x in {2} } }", "x in {2"),
}


@pytest.mark.parametrize("name", SOUND)
def test_sound_rego_compiles_and_answers(name: str) -> None:
    policy = CompiledPolicy({"gateway.rego": HEADER + SOUND[name] + "\n"}, "{}")
    json.loads(policy.evaluate({"a": 1, "b": [1, 2, 3], "o": {"p": 1}}))


@pytest.mark.parametrize("name", UNSET)
def test_a_name_that_never_gets_a_value_is_refused(name: str) -> None:
    body, shown = UNSET[name]
    with pytest.raises(PolicyError) as refusal:
        CompiledPolicy({"gateway.rego": HEADER + body + "\n"}, "{}")
    assert shown in str(refusal.value)
    assert "never gets a value" in str(refusal.value)


def test_the_refusal_names_file_line_and_rule() -> None:
    modules = {
        "gateway.rego": HEADER + "decision := 1\n",
        "helpers.rego": "package helpers\n\nimport rego.v1\n\n# é\nready if not redy\n",
    }
    with pytest.raises(PolicyError) as refusal:
        CompiledPolicy(modules, "{}")
    assert refusal.value.problems[0].startswith('helpers.rego:6 (data.helpers.ready): "redy" in "if not redy"')


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("decision := nope(1)", "gateway.rego:5 (data.gateway.decision): there is no function nope"),
        ("a if b\n\nb if a\n\ndecision if a", "data.gateway.a: reaches itself (recursion)"),
        ("f(x) := f(x + 1)\n\ndecision := f(1)", "data.gateway.f: reaches itself (recursion)"),
        ("decision := opa.runtime()", "opa.runtime: a decision may not use it"),
        ('decision := http.send({"method": "GET", "url": "http://localhost"})', "http.send: a decision may not use it"),
        ('decision := net.lookup_ip_addr("localhost")', "net.lookup_ip_addr: a decision may not use it"),
    ],
)
def test_calls_to_nowhere_to_oneself_and_outside_are_refused(body: str, problem: str) -> None:
    with pytest.raises(PolicyError) as refusal:
        CompiledPolicy({"gateway.rego": HEADER + body + "\n"}, "{}")
    assert problem in refusal.value.problems
