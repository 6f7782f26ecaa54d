"""The analysis names exactly the fields of the input that a policy reads, or none."""

import pytest
from regopy import Interpreter

from tests.support.policy import DEFAULT_POLICY, HEADER
from workers.rego.evaluator import CompiledPolicy
from workers.rego.reads import PURE, FieldReads

KNOWN = {
    "decision := input.principal": ("principal",),
    'decision := input["principal"]': ("principal",),
    "decision := input[`principal`]": ("principal",),
    "decision := input.budgets_before.calls_remaining": ("budgets_before",),
    "decision := input.scopes[0]": ("scopes",),
    "decision := [x | some x in input.scopes]": ("scopes",),
    "decision := input.scopes[input.owner]": ("owner", "scopes"),
    "decision if not input.owner": ("owner",),
    "decision := data.acl[input.owner]": ("owner",),
    "decision := data.acl": (),
    "decision := [1, 2]": (),
    "import input.principal as p\n\ndecision := p": ("principal",),
    "import input as i\n\ndecision := i.owner": ("owner",),
    "decision := [p | walk(input.targets, [p, _])]": ("targets",),
    "f(x) := concat(x, input.scopes)\n\ndecision := f(input.owner)": ("owner", "scopes"),
    'o[k] := v if { some k, v in input.targets }\n\ndecision := o["a"]': ("targets",),
    "decision := data.gateway.other\n\nother := input.owner": ("owner",),
    "unused := input\n\ndecision := input.owner": ("owner",),
    'decision := $"{input.owner} and {input.principal}"': ("owner", "principal"),
    "decision := input.unheard_of": ("unheard_of",),
}
UNKNOWN = {
    "decision := input": "as a whole",
    "decision := [v | some k; v := input[k]]": "as a whole",
    'decision if input[_] == "a"': "as a whole",
    "decision := [v | some v in input]": "as a whole",
    "decision if { every v in input { v != 1 } }": "as a whole",
    'decision := object.get(input, "owner", 1)': "as a whole",
    "decision := count(input)": "as a whole",
    "decision := {1: input}": "as a whole",
    "decision if input == {}": "as a whole",
    'decision if { {"owner": "a"} := input }': "as a whole",
    "decision := x.owner if { x := input }": "as a whole",
    "f(x) := x.owner\n\ndecision := f(input)": "as a whole",
    "decision := [p | walk(input, [p, _])]": "as a whole",
    'k := "owner"\n\ndecision := input[k]': "whose name is a variable",
    "decision := input[input.principal]": "whose name is a variable",
    "decision := [1 | some k in data.names; input[k]]": "whose name is a variable",
    'x := input.owner\n\ndecision := y if { y := x with input.owner as "a" }': "`with`",
    "decision := y if { y := data.acl with data.acl as {} }": "`with`",
    "r.a := 1\n\nr.b := input.owner\n\ndecision := r[input.principal]": "names a rule by a variable",
    "decision := time.now_ns()": "time.now_ns",
    'decision := rand.intn("a", 3)': "rand.intn",
    'decision := uuid.rfc4122("a")': "uuid.rfc4122",
    "decision if { print(input.owner) }": "internal.print",
    'decision := net.cidr_contains("10.0.0.0/8", input.owner)': "net.cidr_contains",
    "decision := io.jwt.decode(input.owner)": "io.jwt.decode",
    "f := time.now_ns()\n\ng := f\n\ndecision if g > 1": "data.gateway.f uses time.now_ns",
}


def reads(body: str, **modules: str) -> FieldReads:
    return CompiledPolicy({"gateway.rego": HEADER + body + "\n", **modules}, '{"acl": {}, "names": []}').reads


@pytest.mark.parametrize("body", KNOWN)
def test_named_fields_are_reported(body: str) -> None:
    assert reads(body) == FieldReads(KNOWN[body])


@pytest.mark.parametrize("body", UNKNOWN)
def test_an_indirect_read_makes_the_fields_unknown_with_a_reason(body: str) -> None:
    reading = reads(body)
    assert reading.fields is None
    assert reading.unknown is not None
    assert UNKNOWN[body] in reading.unknown


def test_a_parameter_that_is_named_input_is_not_taken_for_it() -> None:
    assert reads('f(input) := input.owner\n\ndecision := [f({"owner": 1}), input.principal]').fields is None


def test_rules_of_other_modules_count_as_far_as_the_decision_reaches_them() -> None:
    other = "package other\n\nimport rego.v1\n\na := input.owner\n\nb := input\n"
    assert reads("decision := data.other.a", **{"o.rego": other}) == FieldReads(("owner",))
    assert reads("decision := data.other.b", **{"o.rego": other}).fields is None
    assert reads("decision := data.other[input.principal]", **{"o.rego": other}).fields is None


def test_the_default_policy_reads_neither_the_budget_nor_the_request() -> None:
    policy = CompiledPolicy({"gateway.rego": DEFAULT_POLICY.read_text()}, '{"policy_version": "1"}')
    assert policy.reads == FieldReads(
        (
            "action_id", "action_risk_level", "action_trust_verdict", "principal", "requested_sinks",
            "required_scopes", "scopes", "unresolved_domains", "unresolved_paths",
        )
    )  # fmt: skip


def test_no_built_in_that_looks_at_the_world_or_the_clock_counts_as_pure() -> None:
    families = {"time", "rand", "http", "opa", "net", "trace", "print", "uuid", "io", "rego", "crypto"}
    assert not [name for name in PURE if name.split(".")[0] in families or name == "internal.print"]


def test_every_name_on_the_list_is_one_that_the_evaluator_knows() -> None:
    """A name that is mistyped there would cost a policy its memo without a word."""
    known = Interpreter()
    assert not [name for name in PURE if not known.is_builtin(name)]
