"""Quorums: the rule is that of people who each stand for one group at a time."""

from itertools import permutations

from hypothesis import given
from hypothesis import strategies as st

from ipc.configuration.quorum import GivenApproval, Quorum, QuorumRule, configured, in_force, is_met, needed, stricter
from ipc.settings import OperatorSettings

GROUPS = ("finance", "security", "legal")


def seats_are_filled(quorum: Quorum, members: list[set[str]]) -> bool:
    """Whether some order of the people fills every seat, tried one by one."""
    seats = [name for name, number in quorum.groups.items() for _ in range(number)]
    if len(members) < max(quorum.count, len(seats)):
        return False
    return any(
        all(seat in one for seat, one in zip(seats, order, strict=False)) for order in permutations(members, len(seats))
    )


@given(
    st.integers(1, 4),
    st.dictionaries(st.sampled_from(GROUPS), st.integers(1, 2), max_size=3),
    st.lists(st.sets(st.sampled_from(GROUPS)), max_size=5),
)
def test_a_quorum_is_met_exactly_when_each_seat_of_a_group_has_a_person_of_its_own(
    count: int, groups: dict[str, int], members: list[set[str]]
) -> None:
    quorum = needed(count, groups)
    assert is_met(quorum, members) == seats_are_filled(quorum, members)


@given(
    st.integers(1, 3), st.dictionaries(st.sampled_from(GROUPS), st.integers(1, 2)), st.integers(1, 3),
    st.dictionaries(st.sampled_from(GROUPS), st.integers(1, 2)), st.lists(st.sets(st.sampled_from(GROUPS)), max_size=6),
)  # fmt: skip
def test_the_stricter_of_two_is_met_only_where_both_are(
    count: int, groups: dict[str, int], other: int, others: dict[str, int], members: list[set[str]]
) -> None:
    one, two = needed(count, groups), needed(other, others)
    both = stricter(one, two)
    assert both is not None
    if is_met(both, members):
        assert is_met(one, members)
        assert is_met(two, members)


def test_a_rule_for_the_action_wins_over_one_for_its_risk() -> None:
    rules = (QuorumRule(risk_level="high", count=3), QuorumRule(action_id="pay", count=2))
    assert configured(rules, "pay", "high") == Quorum(2)
    assert configured(rules, "mail", "high") == Quorum(3)
    assert configured(rules, "mail", "low") is None
    one = (*rules, QuorumRule(action_id="mail", count=1))
    assert configured(one, "mail", "high") is None, "one approval by any operator, as without a quorum"


def test_an_approval_counts_while_its_operator_has_key_role_and_group() -> None:
    given_ = GivenApproval("ada", "J" * 43, "jti", "2026-11-27T00:00:00.000Z", ("finance", "legal"))
    ada = OperatorSettings("ada", dpop_jkt="J" * 43, groups=("finance",))
    (counting,) = in_force([given_], [ada], "team-a")
    assert counting.groups == ("finance",)
    assert in_force([given_], [OperatorSettings("ada", dpop_jkt="K" * 43)], "team-a") == ()
    assert in_force([given_], [OperatorSettings("ada", dpop_jkt="J" * 43, roles=("read",))], "team-a") == ()
    assert in_force([given_], [OperatorSettings("bob", dpop_jkt="J" * 43)], "team-a") == ()
