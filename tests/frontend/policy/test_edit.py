"""Changes of a policy's data: what they say, what they leave alone, and what tells their versions apart."""

import json
from collections.abc import Iterable
from typing import Any

import pytest

from frontend.policy import edit
from frontend.policy.acl import MAX_POLICY_BYTES, PolicyFiles
from frontend.policy.data import MAX_VERSION, PolicyData, parse_data
from frontend.policy.engine import PolicySources

DECLARED = {"pay": {"http_write"}, "read": {"http_read"}, "note": {"fs_write", "http_read"}, "think": set()}
TEXT = """{
  "policy_version": "2026-11-20.1",
  "interns": ["team-summer", 1.50, {"deep": [null]}],
  "acl": {
    "billing": {"sinks": ["http_write", "http_read"], "actions": ["pay", "read"]},
    "shy": {"actions": [], "inherits_wildcard": false},
    "*": {"actions": ["think"]}
  },
  "allowlist": {"pay": {"billing": true}, "old": {"a": true, "b": true}},
  "denied_actions": {"export": "não"}
}"""


def sinks_of(actions: Iterable[str]) -> frozenset[str]:
    return frozenset().union(*(DECLARED.get(name, frozenset()) for name in actions))


def files(text: str = TEXT, modules: dict[str, str] | None = None) -> PolicyFiles:
    data = parse_data(text)
    assert isinstance(data, PolicyData)
    return PolicyFiles(PolicySources(modules or {}, text, data.policy_version), data)


DATA = files().data


def test_a_grant_of_what_is_there_changes_nothing() -> None:
    assert edit.grant(DATA, "billing", ["read", "pay"], sinks_of) == DATA


def test_sinks_that_no_action_declares_any_more_go_with_the_next_change() -> None:
    after = edit.grant(DATA, "billing", ["think"], lambda actions: sinks_of(set(actions) - {"read"}))
    assert after.acl["billing"].sinks == ("http_write",)


def test_an_exception_that_was_switched_off_by_hand_is_switched_on() -> None:
    off = files(TEXT.replace('"billing": true', '"billing": false')).data
    assert edit.allow(off, "pay", "billing").allowlist["pay"] == {"billing": True}
    assert "pay" not in edit.disallow(off, "pay", "billing").allowlist


# ------------------------------------------------------------------ the document


def rewritten(data: PolicyData, before: PolicyFiles | None = None) -> dict[str, Any]:
    return dict(json.loads(edit.rewritten(before or files(), data).sources.data))


def test_everything_that_was_not_changed_stays_as_its_author_wrote_it() -> None:
    before = json.loads(TEXT)
    after = rewritten(edit.grant(DATA, "billing", ["note"], sinks_of))
    assert list(after) == list(before)
    assert after | {"policy_version": 0, "acl": 0} == before | {"policy_version": 0, "acl": 0}
    assert {name: one for name, one in after["acl"].items() if name != "billing"} == {
        name: one for name, one in before["acl"].items() if name != "billing"
    }
    assert "não" in edit.rewritten(files(), edit.allow(DATA, "a", "b")).sources.data


def test_a_version_tells_what_decides_and_nothing_else() -> None:
    first = edit.rewritten(files(), edit.grant(DATA, "billing", ["note"], sinks_of))
    base, _, mark = first.data.policy_version.partition("+")
    assert (base, len(mark)) == ("2026-11-20.1", 8)
    assert int(mark, 16) >= 0
    second = edit.rewritten(first, edit.allow(first.data, "read", "billing"))
    assert second.data.policy_version.startswith("2026-11-20.1+")
    assert second.data.policy_version != first.data.policy_version
    back = edit.rewritten(second, edit.disallow(second.data, "read", "billing"))
    assert back.data.policy_version == first.data.policy_version
    denied = files(first.sources.data.replace("não", "sim"))
    assert edit.rewritten(denied, denied.data).data.policy_version != first.data.policy_version
    of_the_author = files(first.sources.data.replace("team-summer", "team-winter"))
    assert edit.rewritten(of_the_author, of_the_author.data).data.policy_version == first.data.policy_version


@pytest.mark.parametrize("version", ["1", "v1+01234567", "+", "a+b", "x" * MAX_VERSION, "x" * (MAX_VERSION - 9)])
def test_any_version_can_carry_its_mark_and_carries_one(version: str) -> None:
    written = edit.rewritten(files(json.dumps({"policy_version": version})), edit.allow(PolicyData("1"), "a", "b"))
    assert written.data.policy_version.startswith(version.replace("+01234567", "")[:119] + "+")
    again = edit.rewritten(written, edit.allow(written.data, "c", "d")).data.policy_version
    assert len(again) == len(written.data.policy_version) <= MAX_VERSION


def test_sections_that_are_not_there_are_made() -> None:
    small = files('{"policy_version": "1"}')
    granted = edit.rewritten(small, edit.grant(small.data, "a", ["pay"], sinks_of))
    assert list(granted.data.acl) == ["a"]
    assert "allowlist" not in json.loads(granted.sources.data)
    assert edit.rewritten(small, edit.allow(small.data, "pay", "a")).data.allowlist == {"pay": {"a": True}}


def test_more_than_a_policy_may_have_is_refused() -> None:
    large = files(modules={"gateway.rego": "#" * (MAX_POLICY_BYTES - len(TEXT))})
    with pytest.raises(edit.PolicyTooLarge):
        edit.rewritten(large, edit.grant(DATA, "x" * 200, ["note"], sinks_of))


def test_whatever_decides_is_in_the_digest() -> None:
    source = PolicySources({"a.rego": "1", "b.rego": "2"}, "{}", "v")
    assert source.digest == PolicySources({"b.rego": "2", "a.rego": "1"}, "{}", "v").digest
    others = (
        PolicySources({"a.rego": "1", "b.rego": "3"}, "{}", "v"), PolicySources({"a.rego": "1"}, "{}", "v"),
        PolicySources({"a.rego": "1", "c.rego": "2"}, "{}", "v"), PolicySources(source.modules, "{} ", "v"),
    )  # fmt: skip
    assert len({source.digest, *(other.digest for other in others)}) == 5
