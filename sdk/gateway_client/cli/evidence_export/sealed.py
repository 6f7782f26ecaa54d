"""Events that an export lacks because they lie in sealed segments (docs/evidence.md, "Sealed segments")."""

from dataclasses import dataclass
from datetime import datetime

from gateway_client.cli.exits import Failure, ScriptExit
from gateway_client.errors import ProtocolViolation
from gateway_client.operators import OperatorClient
from gateway_client.results import EventFilter

SEALED = "sealed"


@dataclass(frozen=True, slots=True)
class SealedGap:
    """Events up to a time are in these segments, and maybe in earlier ones."""

    until: str
    segments: tuple[str, ...]

    def failure(self, file: str) -> Failure:
        """The complaint about an export that lacks them."""
        names = ", ".join(self.segments)
        text = f"{file} lacks what was sealed: events up to {self.until} are in {names}"
        mend = f"read the segments, too; or export what is left: --after {self.until}"
        return Failure(ScriptExit.NOT_FOUND, SEALED, text, mend)


def gap_of(operator: OperatorClient, where: EventFilter) -> SealedGap | None:
    """The sealed part of an export with these bounds; None if it has none. Raises GatewayError."""
    sealed = []
    for event in operator.iter_events(EventFilter(event_type="LedgerSealed")):
        change = event.raw.get("change")
        if not isinstance(change, dict) or not isinstance(change.get("until"), str):
            raise ProtocolViolation("an event LedgerSealed does not say what was sealed")
        if where.after is None or _moment(change["until"]) > _moment(where.after):
            sealed.append((change["until"], str(change.get("segment"))))
    if not sealed:
        return None
    return SealedGap(sealed[0][0], tuple(segment for _, segment in reversed(sealed)))


def _moment(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise ProtocolViolation("an event LedgerSealed tells no time") from None
