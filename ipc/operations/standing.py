"""Operations on standing approvals: an operator's signed word that lets calls run which would be held."""

import msgspec

from ipc.evidence.events import AuditEvent
from ipc.operations.operation import FrontOperation


class StandingUse(msgspec.Struct, frozen=True):
    """A call that is to run by a standing approval."""

    standing_id: str
    policy_input: str = "{}"
    """The values of its request at the pointers of `policy_input`, canonical JSON."""


class Lifted(msgspec.Struct, frozen=True, tag=True):
    """The call need not be held: a standing approval covers it. Neither ledger nor store changed: the front asks
    Open."""

    standing_id: str


class StandingRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A standing approval as it is stored. All that it allows stands in `signature`."""

    standing_id: str
    action_id: str
    principal: str
    until: int
    """Unix seconds; for a revoked approval the time at which it is forgotten."""
    epoch: int
    operator: str
    created_at: str
    signature: str
    is_ended: bool = False
    """It was revoked. It is kept so that the same text is not added again."""


class StandingInForce(msgspec.Struct, frozen=True):
    """A standing approval and the number of calls that have used it."""

    row: StandingRow
    calls: int


class AddStanding(FrontOperation[StandingInForce | None], frozen=True):
    """Store a standing approval with its event; None where one with this id is over, or there are too many, of its
    operator or of all.

    `operator` has sent it, and must have signed it. The answer to a text that is in force already is its row.
    """

    signature: str
    operator: str
    event: AuditEvent


class ListStanding(FrontOperation[tuple[StandingInForce, ...]], frozen=True):
    """Read those that are in force, the first one that ends first."""


class RevokeStanding(FrontOperation[StandingInForce | None], frozen=True):
    """End a standing approval with its event; None where none of this id is in force."""

    standing_id: str
    event: AuditEvent


class FindStanding(FrontOperation[str | None], frozen=True):
    """Read which standing approval would let this call run; None where none would. Counts nothing."""

    action_id: str
    principal: str
    owner: str | None
    policy_input: str
