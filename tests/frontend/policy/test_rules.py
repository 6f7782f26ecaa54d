"""The rules of Rego files by their text, what they read, and what that stands for."""

from typing import Any

import pytest

from frontend.policy.references import MISSING, NoValue, resolve
from frontend.policy.rules import reads_of, rules_of
from tests.support.policy import DEFAULT_POLICY

SOURCE = """# package not.this
package gateway.more

import rego.v1

default open := false

open if input.a == "x := 1" # closed := 2

list := [
one,
{"two": 2},
]

set contains x if {
some x in data.xs[input.who]["k"]
	helper(x)
}

helper(x) := y if {
	y := input.deep.er
} else := data.other

text := `
fake := 1
`

open if data.late
"""


def test_rules_are_found_with_their_places_and_all_their_definitions() -> None:
    rules = rules_of({"a.rego": SOURCE})
    assert {(rule.name, rule.line, rule.is_function) for rule in rules.values()} == {
        ("open", 6, False), ("list", 10, False), ("set", 15, False), ("helper", 20, True), ("text", 24, False),
    }  # fmt: skip
    assert all(rule.package == "gateway.more" for rule in rules.values())
    assert rules["gateway.more", "open"].entry == "gateway/more/open"
    assert "data.late" in rules["gateway.more", "open"].text
    assert "closed" not in rules["gateway.more", "open"].text


def test_what_a_rule_reads_is_found_through_the_rules_that_it_uses() -> None:
    rules = rules_of({"a.rego": SOURCE})
    assert reads_of(rules["gateway.more", "open"], rules) == ["input.a", "data.late"]
    assert reads_of(rules["gateway.more", "set"], rules) == ['data.xs[input.who]["k"]', "input.deep.er", "data.other"]


def test_rules_of_one_package_may_stand_in_several_files() -> None:
    rules = rules_of(
        {"a.rego": "package p\n\na := 1\n", "b.rego": "package p\n\nb := 1\n\na := 1\n", "c.rego": "d := 1"}
    )
    assert [(rule.file, rule.name) for rule in rules.values()] == [("a.rego", "a"), ("b.rego", "b")]


def test_the_default_policy_is_read_whole() -> None:
    rules = rules_of({"gateway.rego": DEFAULT_POLICY.read_text()})
    conditions = [name for _, name in rules if name.startswith("applies_")]
    assert len(conditions) == 9
    acl = reads_of(rules["gateway", "applies_acl"], rules)
    assert {"input.action_id", "data.acl[input.principal].actions", 'data.acl["*"].actions'} <= set(acl)


INPUT: dict[str, Any] = {"who": "ann", "n": 1, "deep": {"er": [1]}, "odd": 'a"b'}
DATA: dict[str, Any] = {"acl": {"ann": {"actions": ["x"]}, 'a"b': 2, "*": 3}, "names": {"ann": "ann"}}


@pytest.mark.parametrize(
    ("reference", "shown", "value"),
    [
        ("input.who", "input.who", "ann"),
        ("input.deep.er", "input.deep.er", [1]),
        ("input.deep.nothing.more", "input.deep.nothing.more", MISSING),
        ("data.acl[input.who].actions", 'data.acl["ann"].actions', ["x"]),
        ("data.acl[input.odd]", 'data.acl["a\\"b"]', 2),
        ('data.acl["*"]', 'data.acl["*"]', 3),
        ("data.acl[data.names[input.who]].actions", 'data.acl["ann"].actions', ["x"]),
        ("data.acl.bob", "data.acl.bob", MISSING),
        ("input.n.more", "input.n.more", MISSING),
    ],
)  # fmt: skip
def test_a_reference_stands_for_a_value(reference: str, shown: str, value: Any) -> None:
    assert resolve(reference, INPUT, DATA) == (shown, value)


@pytest.mark.parametrize(
    "reference", ["data.acl[x]", "data.acl[input.n]", "data.acl[input.nothing]", "acl.x", "data[1]"]
)
def test_a_reference_with_a_variable_has_no_value(reference: str) -> None:
    with pytest.raises(NoValue):
        resolve(reference, INPUT, DATA)
