"""Changes of a policy's data: what they say, what they leave alone, and what tells their versions apart."""

import json
from collections.abc import Iterable
from typing import Any

import msgspec
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


def entry(data: PolicyData, principal: str) -> tuple[tuple[str, ...], tuple[str, ...], bool]:
    acl_entry = data.acl[principal]
    return acl_entry.actions, acl_entry.sinks, acl_entry.inherits_wildcard


def test_a_grant_adds_actions_once_and_sinks_follow_from_all_of_them() -> None:
    after = edit.grant(DATA, "billing", ["note", "pay", "note"], sinks_of)
    assert entry(after, "billing") == (("pay", "read", "note"), ("fs_write", "http_read", "http_write"), False)
    assert after.acl["shy"] == DATA.acl["shy"]


def test_a_grant_of_what_is_there_changes_nothing() -> None:
    assert edit.grant(DATA, "billing", ["read", "pay"], sinks_of) == DATA


def test_sinks_that_no_action_declares_any_more_go_with_the_next_change() -> None:
    after = edit.grant(DATA, "billing", ["think"], lambda actions: sinks_of(set(actions) - {"read"}))
    assert after.acl["billing"].sinks == ("http_write",)


def test_a_first_grant_leaves_a_principal_what_the_wildcard_gave_it() -> None:
    assert edit.grant(DATA, "new", ["pay"], sinks_of).acl["new"].inherits_wildcard is True
    without = PolicyData("1")
    assert edit.grant(without, "new", ["pay"], sinks_of).acl["new"].inherits_wildcard is False
    assert edit.grant(without, "*", ["pay"], sinks_of).acl["*"].inherits_wildcard is False


@pytest.mark.parametrize("principal", ["billing", "shy"])
def test_whether_an_entry_inherits_is_left_as_its_author_wrote_it(principal: str) -> None:
    assert edit.grant(DATA, principal, ["note"], sinks_of).acl[principal].inherits_wildcard is False


def test_a_revocation_leaves_the_rest_and_its_sinks() -> None:
    after = edit.revoke(DATA, "billing", ["pay", "never_had"], sinks_of)
    assert entry(after, "billing") == (("read",), ("http_read",), False)


def test_an_entry_goes_with_its_last_action() -> None:
    alone = msgspec.structs.replace(DATA, acl={name: one for name, one in DATA.acl.items() if name != "*"})
    assert "billing" not in edit.revoke(alone, "billing", ["pay", "read"], sinks_of).acl
    granted = edit.grant(DATA, "new", ["pay"], sinks_of)
    assert edit.revoke(granted, "new", ["pay"], sinks_of) == DATA, "what the wildcard allows is as it was"


def test_an_entry_that_lost_its_last_action_still_keeps_the_wildcard_away() -> None:
    assert entry(edit.revoke(DATA, "billing", ["pay", "read"], sinks_of), "billing") == ((), (), False)


@pytest.mark.parametrize("has_entry", [False, True])
def test_what_the_wildcard_allows_is_revoked_too(has_entry: bool) -> None:
    shared = DATA.acl["*"].actions
    before = edit.grant(DATA, "new", ["pay"], sinks_of) if has_entry else DATA
    actions, _sinks, inherits = entry(edit.revoke(before, "new", shared[:1], sinks_of), "new")
    assert set(actions) == {*shared[1:], *(["pay"] if has_entry else [])}
    assert not inherits


def test_an_entry_that_keeps_the_wildcard_away_stays() -> None:
    assert edit.revoke(DATA, "shy", ["pay"], sinks_of) == DATA


def test_nobody_without_an_entry_can_lose_anything() -> None:
    with pytest.raises(edit.NothingThere):
        edit.revoke(DATA, "new", ["pay"], sinks_of)


def test_an_exception_is_added_once_and_an_action_goes_with_its_last_one() -> None:
    added = edit.allow(DATA, "read", "billing")
    assert added.allowlist["read"] == {"billing": True}
    assert edit.allow(added, "read", "billing") == added
    assert "read" not in edit.disallow(added, "read", "billing").allowlist
    assert edit.disallow(DATA, "old", "a").allowlist["old"] == {"b": True}
    for pair in (("read", "billing"), ("old", "c")):
        with pytest.raises(edit.NothingThere):
            edit.disallow(DATA, *pair)


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


def test_what_is_written_is_what_was_meant() -> None:
    for data in (
        edit.grant(DATA, "new", ["pay"], sinks_of), edit.revoke(DATA, "billing", ["pay"], sinks_of),
        edit.allow(DATA, "read", "new"), edit.disallow(DATA, "pay", "billing"),
    ):  # fmt: skip
        written = edit.rewritten(files(), data)
        assert (written.data.acl, written.data.allowlist) == (data.acl, data.allowlist)
        assert written.sources.policy_version == written.data.policy_version


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
