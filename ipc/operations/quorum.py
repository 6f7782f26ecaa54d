"""The operation on holds that need the approvals of several operators."""

from typing import Literal

import msgspec

from ipc.configuration.quorum import GivenApproval
from ipc.evidence.events import AuditEvent
from ipc.operations.operation import FrontOperation


class ApprovalNoted(msgspec.Struct, frozen=True, tag=True):
    """The result of an approval. `given`: stored, and others must follow. `last`: not stored; with it the quorum is
    met, and the front claims the hold. `repeated`: not stored; the same operator has approved already."""

    became: Literal["given", "last", "repeated"]
    approvals: tuple[GivenApproval, ...] = ()
    """Those that count; with `last` the asked one is the last of them."""


class GiveApproval(FrontOperation[ApprovalNoted | None], frozen=True):
    """Store one approval of several with its event, all or nothing; None if the hold does not wait any more."""

    approval_id: str
    given: GivenApproval
    event: AuditEvent
