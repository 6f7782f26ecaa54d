"""Identifiers as people type them: whole, or as much of one end as names a single one.

A whole identifier is never looked up. SECURITY: a part names something only when no other fits and all were seen, since
what it names may be approved; where that can't be told, nothing is named.
"""

import re
from collections.abc import Callable, Iterable

from gateway_client.cli.display.safe import safe
from gateway_client.cli.exits import Failure, ScriptExit, usage
from gateway_client.cli.paging import every_session
from gateway_client.operators import OperatorClient
from gateway_client.results import AuditEvent, EventFilter

LEAST = 4
"""Characters of a part, its kind not counted."""
MOST = 200
RECENT = 1000
"""Events in which receipts and traces are looked for: one page."""
_WHOLE = re.compile(r"[a-z]+_[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_KIND = re.compile(r"^[a-z]+_")
CALLS = EventFilter(event_type="ActionCall")


def is_whole(given: str) -> bool:
    """True if the text is a whole id, or too short for a prefix."""
    return _WHOLE.fullmatch(given) is not None or len(_KIND.sub("", given)) < LEAST


def named(given: str, known: Callable[[], Iterable[str]], what: str) -> str:
    """The one of `known` that begins or ends with `given`, with its kind before it or without; `given` itself when it
    is whole, or nothing fits. Raises Failure usage when several do."""
    if is_whole(given):
        return given
    part = given.removeprefix("…")
    kind, _, end = part.partition("_…")
    matches = {one for one in known() if _fits(one, part) or (end and one.startswith(f"{kind}_") and one.endswith(end))}
    if len(matches) > 1:
        raise usage(f"{len(matches)} {what} begin or end with {safe(given)}", "give more of it")
    return matches.pop() if matches else given


def approval(operator: OperatorClient, given: str) -> str:
    """The approval that `given` names."""
    return named(given, lambda: _approvals(operator), "approvals")


def receipt(operator: OperatorClient, given: str) -> str:
    """The receipt of one of the newest calls that `given` names."""
    return named(given, lambda: _of_calls(operator, "receipt_id"), "receipts of the newest calls")


def session(operator: OperatorClient, given: str) -> str:
    """The session that `given` names."""
    return named(given, lambda: [one.session_id for one in every_session(operator)], "sessions")


def intent(operator: OperatorClient, given: str) -> str:
    """The unresolved intent that `given` names."""
    return named(given, lambda: [one.intent_id for one in operator.intents(RECENT)], "intents")


def anything(operator: OperatorClient, given: str) -> str:
    """A trace, a receipt or an approval."""

    def known() -> Iterable[str]:
        calls = recent_calls(operator)
        for name in ("receipt_id", "trace_id"):
            yield from (str(one.raw[name]) for one in calls if one.raw.get(name))
        yield from _approvals(operator)

    return named(given, known, "traces, receipts and approvals")


def recent_calls(operator: OperatorClient, limit: int = RECENT) -> tuple[AuditEvent, ...]:
    """The newest events of calls."""
    return operator.events(CALLS, limit).events


def only_waiting(operator: OperatorClient) -> str:
    """The approval that waits, when it is the only one. Raises Failure."""
    waiting = operator.approvals("pending", MOST).approvals
    if not waiting:
        raise Failure(ScriptExit.NOT_FOUND, "approval_not_found", "nothing waits", "gatectl approvals list")
    if len(waiting) > 1:
        raise usage(f"{len(waiting)} calls wait: say which", "gatectl approvals list --status pending")
    return waiting[0].approval_id


def _approvals(operator: OperatorClient) -> list[str]:
    page = operator.approvals(None, MOST)
    if page.total is None or page.total > len(page.approvals):
        raise usage("there are more approvals than one list shows", "give the whole identifier")
    return [one.approval_id for one in page.approvals]


def _of_calls(operator: OperatorClient, name: str) -> list[str]:
    return [str(one.raw[name]) for one in recent_calls(operator) if one.raw.get(name)]


def _fits(whole: str, part: str) -> bool:
    return whole.startswith(part) or whole.endswith(part) or whole.partition("_")[2].startswith(part)
