"""Quorums: how many operators, and of which groups, must approve a held call before it runs.

An approval counts for one group at a time, so that one person in two groups stands for one of them. Front and notary
judge with the same code: the notary decides, the front tells operators.
"""

from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Final, Protocol

import msgspec

from ipc.configuration.roles import APPROVE_ROLE

MOST_GROUPS: Final = 8
MOST_APPROVALS: Final = 32
MOST_NAME: Final = 128
"""Characters of the name of a group."""


class QuorumRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[[approvals.quorum]]`: the approvals that held calls of one action, or of one risk level, need."""

    risk_level: str | None = None
    action_id: str | None = None
    count: int = 1
    groups: dict[str, int] = {}
    """Name of a group -> how many of its members must be among them."""


class Quorum(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`count` approvals by different operators; of these `groups[name]` by members of each group."""

    count: int
    groups: dict[str, int] = {}


class GivenApproval(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One approval of several."""

    approved_by: str
    operator_jkt: str
    operator_proof_jti: str
    at: str
    """When the front had it (ISO 8601)."""
    groups: tuple[str, ...] = ()
    """The groups of the quorum that the operator was in."""
    signature: str | None = None


class CredentialOfOperator(Protocol):
    """The members of `[[operators]]` by which an approval counts."""

    @property
    def name(self) -> str: ...
    @property
    def dpop_jkt(self) -> str | None: ...
    @property
    def groups(self) -> tuple[str, ...]: ...
    @property
    def roles(self) -> tuple[str, ...]: ...
    @property
    def owner(self) -> str | None: ...


def needed(count: int, groups: dict[str, int]) -> Quorum:
    """A quorum whose groups' members fit into its count."""
    return Quorum(max(count, sum(groups.values()), 1), groups)


def configured(rules: Iterable[QuorumRule], action_id: str, risk_level: str) -> Quorum | None:
    """The quorum of the configuration for an action: of the rule that names it, or of that for its risk level."""
    found = None
    for rule in rules:
        if rule.action_id == action_id:
            found = rule
            break
        if rule.risk_level == risk_level:
            found = rule
    return None if found is None else several(needed(found.count, found.groups))


def several(quorum: Quorum | None) -> Quorum | None:
    """The quorum, or None where a single approval by any operator meets it."""
    return None if quorum is None or (quorum.count <= 1 and not quorum.groups) else quorum


def stricter(one: Quorum | None, other: Quorum | None) -> Quorum | None:
    """The quorum that satisfies both; None for a single approval by any operator."""
    if one is None or other is None:
        return one or other
    groups = {name: max(one.groups.get(name, 0), other.groups.get(name, 0)) for name in {**one.groups, **other.groups}}
    return needed(max(one.count, other.count), groups)


def is_met(quorum: Quorum, members: Sequence[Iterable[str]]) -> bool:
    """True if these approvals suffice; `members` are the groups of the operator of each.

    Every choice of groups must have as many approvals as they ask for together (Hall's theorem): then each
    approval can count for one group.
    """
    if len(members) < quorum.count:
        return False
    sets = [frozenset(one) for one in members]
    return all(
        sum(1 for one in sets if one & {*chosen}) >= sum(quorum.groups[name] for name in chosen)
        for size in range(1, len(quorum.groups) + 1)
        for chosen in combinations(quorum.groups, size)
    )


def in_force(
    given: Iterable[GivenApproval], operators: Iterable[CredentialOfOperator], owner: str | None
) -> tuple[GivenApproval, ...]:
    """Approvals that still count: their operator has the same key and the role, and is not the caller's `owner`; with
    the groups of both times."""
    known = {one.name: one for one in operators if APPROVE_ROLE in one.roles}
    counting = []
    for one in given:
        operator = known.get(one.approved_by)
        if operator is None or operator.dpop_jkt not in (None, one.operator_jkt):
            continue
        if operator.owner is None or operator.owner != owner:
            groups = tuple(name for name in one.groups if name in operator.groups)
            counting.append(msgspec.structs.replace(one, groups=groups))
    return tuple(counting)
