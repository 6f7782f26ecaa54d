"""data.json is read strictly, and every problem is named with its line."""

import pytest

from frontend.policy.data import AclEntry, PolicyData, parse_data

GOOD = """{
  "policy_version": "2026-11-20.1",
  "acl": {
    "billing": {"actions": ["pay"], "sinks": ["http_write"], "inherits_wildcard": true},
    "*": {"actions": ["read"]}
  },
  "allowlist": {"pay": {"billing": true}},
  "denied_actions": {"export": "no exports"},
  "of_the_author": {"anything": [1, 2.5, null]}
}
"""


def problems(text: str) -> list[str]:
    outcome = parse_data(text)
    assert isinstance(outcome, list)
    return outcome


def test_a_good_document_is_read_whole() -> None:
    assert parse_data(GOOD) == PolicyData(
        policy_version="2026-11-20.1",
        acl={"billing": AclEntry(("pay",), ("http_write",), True), "*": AclEntry(("read",))},
        allowlist={"pay": {"billing": True}},
        denied_actions={"export": "no exports"},
    )


def test_only_the_version_is_required() -> None:
    assert parse_data('{"policy_version": "1"}') == PolicyData("1")


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('"policy_version": "2026-11-20.1",', "", ":1: policy_version: must be a string"),
        ('"2026-11-20.1"', "1", ":2: policy_version: must be a string"),
        ('"2026-11-20.1"', '""', ":2: policy_version: must be a string"),
        ('"2026-11-20.1"', f'"{"x" * 129}"', ":2: policy_version: must be a string"),
        ('"2026-11-20.1"', r'"a\nb"', ":2: policy_version: must be a string"),
        ('["pay"]', '"pay"', ":4: acl.billing: Expected `array`"),
        ('["pay"]', "[1]", ":4: acl.billing: Expected `str`"),
        ('"inherits_wildcard"', '"inherit_wildcard"', ":4: acl.billing: Object contains unknown field"),
        ('"inherits_wildcard": true', '"inherits_wildcard": 1', ":4: acl.billing: Expected `bool`"),
        ('"actions": ["read"]', '"sinks": []', ":5: acl.*: Object missing required field `actions`"),
        ('"*":', '"bil ling":', ":5: acl.bil ling: is not a name that can occur"),
        ('"*":', '"*x":', ":5: acl.*x: is not a name that can occur"),
        ('{"billing": true}', '{"billing": "yes"}', ":7: allowlist.pay: Expected `bool`"),
        ('"no exports"', "true", ":8: denied_actions.export: Expected `str`"),
        ('"allowlist": {"pay": {"billing": true}}', '"allowlist": []', ":7: allowlist: must be an object"),
        ('"of_the_author"', '"gateway"', ":9: gateway: is the name of the package that decides"),
        ('"*":', '"billing":', ':5: "billing" appears twice in one object'),
        ("null]", "NaN]", ": NaN is not JSON"),
        ("null]", '"\\ud800"]', ": holds half a surrogate pair"),
        ("null]", "[" * 40 + "]" * 40 + "]", ": nested deeper than 32"),
        ("null]", "[" * 5000 + "]" * 5000 + "]", ": nested deeper than 32"),
        ("null]", "1" * 5000 + "]", ": a number has more than 4300 digits"),
        (
            '"allowlist"',
            '"thresholds": {"pay": [{"pointer": "/a", "hold_above": 1}, {"pointer": "a"}]}, "allowlist"',
            ":7: thresholds.pay: must be a pointer such as /amount - at `$[1].pointer`",
        ),
        ("null]", "null", ":"),
    ],
)
def test_a_problem_is_named_with_its_line(old: str, new: str, problem: str) -> None:
    assert old in GOOD
    lines = problems(GOOD.replace(old, new, 1))
    assert len(lines) == 1
    assert lines[0].startswith(problem), lines


def test_a_syntax_error_has_its_line() -> None:
    assert problems('{\n  "policy_version": "1",\n  "acl": {,}\n}')[0].startswith(":3: ")


def test_all_problems_are_named_at_once() -> None:
    assert len(problems('{"acl": {"a": {}, "b": {"actions": 1}}, "denied_actions": []}')) == 4


@pytest.mark.parametrize("text", ["", "[]", '"x"', "null", "[" * 100_000])
def test_what_is_no_object_is_refused(text: str) -> None:
    assert len(problems(text)) == 1
