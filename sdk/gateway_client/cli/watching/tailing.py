"""Which audit events are new: pure bookkeeping for `gatectl audit tail`.

An event's time is stamped before it is written, so a later write may carry an earlier time. Each poll therefore asks
again for everything of the last OVERLAP_SECONDS before the newest event seen, and leaves out what was shown: no event
is missed or told twice, at equal times neither.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from gateway_client.cli.display.times import moved, parse
from gateway_client.results import AuditEvent, EventFilter

OVERLAP_SECONDS = 5.0


@dataclass(slots=True)
class Tail:
    """The events already printed. `where`: the filters of the command."""

    where: EventFilter
    newest: str | None = None
    _seen: dict[str, str] = field(default_factory=dict)

    def next_filter(self) -> EventFilter:
        """The filter of the next question: everything from the overlap on; the bound of the gateway is exclusive."""
        if self.newest is None:
            return self.where
        return replace(self.where, after=moved(self.newest, -OVERLAP_SECONDS))

    def fresh(self, events: Iterable[AuditEvent]) -> list[AuditEvent]:
        """The new events of an answer that is newest first; they are returned oldest first."""
        answer = list(events)
        unseen = [one for one in answer if one.event_id not in self._seen]
        for one in unseen:
            self._seen[one.event_id] = one.timestamp
            if parse(one.timestamp) is not None and (self.newest is None or one.timestamp > self.newest):
                self.newest = one.timestamp
        self._forget()
        if self.newest is None:  # no time at all by which to forget: what the next answer can repeat is this one
            self._seen = {one.event_id: one.timestamp for one in answer}
        return unseen[::-1]

    def _forget(self) -> None:
        if self.newest is None:
            return
        oldest = moved(self.newest, -OVERLAP_SECONDS)
        self._seen = {event_id: at for event_id, at in self._seen.items() if at > oldest}
