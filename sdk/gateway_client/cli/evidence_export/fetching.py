"""Gets the events of an export from the gateway, page by page, and goes on after a broken connection.

A page that fails is asked for again, from the last event in the file on, for PATIENCE_SECONDS. The first question of a
command is not repeated: its failure is a wrong address more often than a broken connection.
"""

from collections.abc import Iterator
from itertools import islice

from gateway_client.cli.display.output import ProgressLine
from gateway_client.cli.evidence_export.partial import PartialExport
from gateway_client.cli.evidence_export.sealed import SEALED
from gateway_client.cli.exits import Failure, ScriptExit
from gateway_client.cli.watching.following import Follow
from gateway_client.errors import GatewayError
from gateway_client.operating.paging import MAX_PAGE
from gateway_client.operators import OperatorClient
from gateway_client.results import AuditEvent

PATIENCE_SECONDS = 300.0
INTERVAL_SECONDS = 0.5


def fetch(operator: OperatorClient, part: PartialExport, progress: ProgressLine) -> None:
    """Append to `part` every event that it lacks. Raises GatewayError, Failure export_cut, OSError."""
    source, is_first = _MissingEvents(operator, part), True
    while page := _page(source, is_first):
        part.append(page)
        progress.show(f"{part.position.count} events, back to {part.position.at}")
        is_first = False


class _MissingEvents:
    """The events that the part lacks, in pages."""

    def __init__(self, operator: OperatorClient, part: PartialExport) -> None:
        self._operator = operator
        self._part = part
        self._events: Iterator[AuditEvent] | None = None

    def page(self) -> list[AuditEvent]:
        """The next events; none at the end. After an error the next page begins behind the last event written."""
        if self._events is None:
            where = self._part.position.rest_of(self._part.bounds.where)
            known = frozenset(self._part.position.ids)
            self._events = (one for one in self._operator.iter_events(where) if one.event_id not in known)
        try:
            return list(islice(self._events, MAX_PAGE))
        except GatewayError as error:
            self._events = None
            if error.code == SEALED:  # it was sealed meanwhile, or before
                return []
            raise


def _page(source: _MissingEvents, is_first: bool) -> list[AuditEvent]:
    follow = Follow(INTERVAL_SECONDS, PATIENCE_SECONDS)
    while True:
        page = follow.ask(source.page, must=is_first)
        if page is not None:
            return page
        if not follow.rest():
            mend = "run the command again with --resume"
            raise Failure(ScriptExit.UNAVAILABLE, "export_cut", "the gateway did not answer for long", mend)
