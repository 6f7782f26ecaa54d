"""An answer says whether a rule was learned, or why it could not be stored."""

from pathlib import Path

import pytest
import trio

from frontend.actions.registry import Registry
from frontend.auth.authentication import OperatorCaller
from frontend.calls.approvals.learning import NO_WISH, Learning, Wish
from frontend.calls.executed import ExecutedCall
from frontend.egress.learned import LearnedRules
from frontend.egress.rules import LearnedKind
from frontend.errors import GateError
from ipc.operations.calls import Closed
from ipc.plan import FileAccess, PlanEgress
from tests.support.front_core import action, registry_of
from tests.support.plans import a_plan

OPERATOR = OperatorCaller("ada", "jkt", "jti")
BOTH = Wish("api.new.example", "new/**")


class Rules(LearnedRules):
    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.looked: list[tuple[str, str, str]] = []
        self.added: list[tuple[str, str, str, str, str]] = []

    def check_room(self, kind: LearnedKind, action_id: str, text: str) -> None:
        self.looked.append((kind.noun, action_id, text))

    async def add(
        self, kind: LearnedKind, action_id: str, text: str, operator: OperatorCaller, approval_id: str | None = None, *,
        given: str | None = None,
    ) -> bool:  # fmt: skip
        assert given is None
        await trio.lowlevel.checkpoint()
        if self.error is not None:
            raise self.error
        self.added.append((kind.noun, action_id, text, operator.name, approval_id or ""))
        return True


async def told(rules: Rules, verification: str = "verified", wish: Wish = BOTH) -> dict[str, str]:
    closed = Closed("grant_1", "rcpt_1", "success", "success", verification, {}, None)
    return await Learning(rules, Registry).learn(
        wish, ExecutedCall(a_plan().trace_id, a_plan().action_id, closed, "{}"), OPERATOR, "apr_1"
    )


async def test_requested_rules_are_learned_for_the_action_with_their_operator() -> None:
    rules = Rules()
    assert await told(rules) == {"learned_domain": "api.new.example", "learned_path": "new/**"}
    assert rules.added == [
        ("domain", "a", "api.new.example", "ada", "apr_1"), ("path", "a", "new/**", "ada", "apr_1"),
    ]  # fmt: skip
    assert await told(rules, wish=NO_WISH) == {}


async def test_nothing_is_learned_from_an_effect_that_was_not_the_wanted_one() -> None:
    rules = Rules()
    assert await told(rules, "verification_failed") == {"learn_error": "verification_failed"}
    assert rules.added == []


@pytest.mark.parametrize(
    ("error", "code"), [(GateError("too_many_rules"), "too_many_rules"), (RuntimeError("ours"), "internal_error")]
)
async def test_a_rule_that_could_not_be_stored_is_reported_beside_the_result(error: Exception, code: str) -> None:
    assert await told(Rules(error)) == {"learn_error": code}


def test_an_action_is_taught_only_what_it_may_use_and_where_there_is_room(tmp_path: Path) -> None:
    rules = Rules()
    registry = registry_of(tmp_path, action("a"))
    learning = Learning(rules, lambda: registry)
    for wish, code in ((Wish(domain="api.new.example"), "invalid_domain"), (Wish(path="new/**"), "invalid_path")):
        with pytest.raises(GateError, match=code) as refused:
            learning.check(wish, a_plan())
        assert "this action may have no" in refused.value.extra["message"]
    assert rules.looked == []
    files = FileAccess("/files", ("write",), ("known/**",), (), 1000)
    learning.check(BOTH, a_plan(egress=PlanEgress("direct_allowlist"), files=files))
    assert rules.looked == [("domain", "a", "api.new.example"), ("path", "a", "new/**")]
