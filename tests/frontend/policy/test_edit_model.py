"""Grants, revocations, exceptions and the epoch against a plain model, over the real file, parser and tables."""

import json
import shutil
import sqlite3
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule

from frontend.policy import edit
from frontend.policy.acl import PolicyFiles, acl_view, principal_view, read_policy
from frontend.policy.data import PolicyData
from notary.store import proofs
from tests.support.properties import FEW

ACTIONS = ("pay", "read", "note", "gone")
DECLARED = {"pay": {"http_write"}, "read": {"http_read"}, "note": {"fs_write"}}
AGENTS = ("a", "b:1", "c@x")
PRINCIPALS = (*AGENTS, "*")
some_actions = st.lists(st.sampled_from(ACTIONS), min_size=1, max_size=3)


def sinks_of(actions: Iterable[str]) -> frozenset[str]:
    return frozenset().union(*(DECLARED.get(name, frozenset()) for name in actions))


def may_call(data: PolicyData, principal: str, action: str) -> bool:
    """Return the data after the edit, by the rules."""
    entry = data.acl.get(principal)
    own = entry is not None and action in entry.actions
    counts = entry is None or entry.inherits_wildcard
    return own or (counts and "*" in data.acl and action in data.acl["*"].actions)


class Authority(RuleBasedStateMachine):
    """The model: actions by principal, whether the wildcard counts, pairs without a hold, an epoch."""

    leases = Bundle("leases")

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="policy-"))
        (self.folder / "gateway.rego").write_text("package gateway\n")
        self.tables = sqlite3.connect(":memory:", isolation_level=None)
        for statement in proofs.TABLES:
            self.tables.execute(statement)
        self.actions: dict[str, set[str]] = {}
        self.inherits: dict[str, bool] = {}
        self.pairs: set[tuple[str, str]] = set()
        self.epoch = 0
        self.author: Any = None
        self.versions: dict[str, str] = {}

    @initialize(with_wildcard=st.booleans(), with_shy=st.booleans())
    def begin(self, with_wildcard: bool, with_shy: bool) -> None:
        acl: dict[str, Any] = {}
        if with_wildcard:
            acl["*"] = {"actions": ["read"], "sinks": ["http_read"]}
            self.actions["*"], self.inherits["*"] = {"read"}, False
        if with_shy:
            acl["b:1"] = {"actions": []}
            self.actions["b:1"], self.inherits["b:1"] = set(), False
        (self.folder / "data.json").write_text(json.dumps({"policy_version": "v1", "acl": acl}))

    def files(self) -> PolicyFiles:
        return read_policy(str(self.folder))

    def write(self, data: PolicyData) -> None:
        before = self.files()
        if data != before.data:
            (self.folder / "data.json").write_text(edit.rewritten(before, data).sources.data)

    @rule(principal=st.sampled_from(PRINCIPALS), actions=some_actions)
    def grant(self, principal: str, actions: list[str]) -> None:
        before = self.files().data
        could = {(one, action) for one in AGENTS for action in ACTIONS if may_call(before, one, action)}
        self.write(edit.grant(before, principal, actions, sinks_of))
        if principal not in self.actions:
            self.inherits[principal] = principal != "*" and "*" in self.actions
        self.actions[principal] = self.actions.get(principal, set()) | set(actions)
        after = self.files().data
        assert all(may_call(after, one, action) for one, action in could), "a grant takes nothing from anybody"
        assert all(may_call(after, principal, action) for action in actions)

    @rule(principal=st.sampled_from(PRINCIPALS), actions=some_actions)
    def revoke(self, principal: str, actions: list[str]) -> None:
        data, taken = self.files().data, set(actions)
        shared = self.actions.get("*", set()) if principal != "*" else set()
        if principal not in self.actions and not taken & shared:
            with pytest.raises(edit.NothingThere):
                edit.revoke(data, principal, actions, sinks_of)
            return
        self.write(edit.revoke(data, principal, actions, sinks_of))
        had, inherits = self.actions.get(principal, set()), self.inherits.get(principal, True)
        if inherits and taken & shared:
            had, inherits = had | shared, False
        keeps_away = principal != "*" and "*" in self.actions and not inherits
        self.actions[principal], self.inherits[principal] = had - taken, inherits
        if had and not had - taken and not keeps_away:
            del self.actions[principal], self.inherits[principal]
        after = self.files().data
        assert not any(may_call(after, principal, action) for action in taken), "what is revoked is not allowed"

    @rule(action=st.sampled_from(ACTIONS), agent=st.sampled_from(AGENTS))
    def allow(self, action: str, agent: str) -> None:
        self.write(edit.allow(self.files().data, action, agent))
        self.pairs.add((action, agent))

    @rule(action=st.sampled_from(ACTIONS), agent=st.sampled_from(AGENTS))
    def disallow(self, action: str, agent: str) -> None:
        data = self.files().data
        if (action, agent) in self.pairs:
            self.write(edit.disallow(data, action, agent))
            self.pairs.remove((action, agent))
        else:
            with pytest.raises(edit.NothingThere):
                edit.disallow(data, action, agent)

    @rule(value=st.recursive(st.none() | st.integers(-5, 5) | st.text(max_size=3), st.lists, max_leaves=3))
    def the_author_writes_something_else(self, value: Any) -> None:
        document = json.loads((self.folder / "data.json").read_text())
        (self.folder / "data.json").write_text(json.dumps(document | {"of_the_author": value}))
        self.author = value

    @rule(target=leases)
    def lease(self) -> int:
        return proofs.epoch(self.tables)

    @rule()
    def revoke_all(self) -> None:
        assert proofs.raise_epoch(self.tables, 0) == (self.epoch, self.epoch + 1)
        self.epoch += 1

    @rule(lease=leases)
    def a_lease_holds_exactly_while_its_epoch_does(self, lease: int) -> None:
        assert (lease == proofs.epoch(self.tables)) == (lease == self.epoch)

    @invariant()
    def the_file_says_what_the_model_says(self) -> None:
        data = self.files().data
        view = acl_view(data)
        assert {name: set(one["actions"]) for name, one in view["principals"].items()} == self.actions
        assert {name: one["inherits_wildcard"] for name, one in view["principals"].items()} == self.inherits
        assert all(set(one["sinks"]) == sinks_of(one["actions"]) for one in view["principals"].values())
        pairs = {(action, agent) for action, agents in view["allowlist"].items() for agent in agents}
        assert pairs == self.pairs
        assert all(view["allowlist"].values()), "no action without an agent"
        for principal in PRINCIPALS:
            assert (principal_view(data, principal, {}) is None) == (principal not in self.actions)

    @invariant()
    def what_is_not_ours_stays(self) -> None:
        assert json.loads(self.files().sources.data).get("of_the_author") == self.author

    @invariant()
    def a_version_means_one_policy(self) -> None:
        data = self.files().data
        decides = json.dumps([acl_view(data)[name] for name in ("principals", "allowlist")], sort_keys=True)
        assert self.versions.setdefault(data.policy_version, decides) == decides or "+" not in data.policy_version

    def teardown(self) -> None:
        self.tables.close()
        shutil.rmtree(self.folder)


TestAuthority = Authority.TestCase
TestAuthority.settings = FEW
