"""The gateway in one line for people, as `systemctl status` shows it: the words of the interface's status. Pure."""

from collections.abc import Sequence

import msgspec

from ipc.messages.control import FrontStatus

SEPARATOR = " · "


class ServingSummary(msgspec.Struct, frozen=True):
    """How the gateway stands. `statuses` are what the fronts that serve said last."""

    state: str
    """A state of supervisor/lifecycle.py."""
    fronts: int
    """How many there should be."""
    statuses: Sequence[FrontStatus]
    seconds_left: float | None = None
    """For calls in flight, once the gateway leaves."""
    is_reload_failed: bool = False
    """The last reload changed nothing."""


def status_line(standing: ServingSummary) -> str:
    """`serving · 41 actions · 2 held · 3 in flight · 0 unresolved · redis ok · opa ok`; while draining the remaining
    calls."""
    match standing.state:
        case "serving" | "stalled":
            parts = _serving(standing)
        case "draining":
            parts = _draining(standing)
        case _:
            parts = []
    return SEPARATOR.join((standing.state, *parts))


def _serving(standing: ServingSummary) -> list[str]:
    statuses, parts = standing.statuses, []
    if len(statuses) < standing.fronts:
        parts.append(f"{len(statuses)} of {standing.fronts} fronts")
    if not statuses:
        return parts
    actions = max(one.actions for one in statuses)
    parts.append(f"{actions} action{'s' * (actions != 1)}")
    # The notary tells every front these counts; -1: unknown.
    held, unresolved = max(one.held for one in statuses), max(one.unresolved for one in statuses)
    parts.append(f"{held} held" if held >= 0 else "held unknown")
    parts.append(f"{sum(one.in_flight for one in statuses)} in flight")
    parts.append(f"{unresolved} unresolved" if unresolved >= 0 else "unresolved unknown")
    for name in statuses[0].dependencies:
        parts.append(f"{name} {'ok' if all(one.dependencies.get(name) for one in statuses) else 'down'}")
    if any(one.is_ledger_full for one in statuses):
        parts.append("ledger full")
    if any(one.clock_error is not None for one in statuses):
        parts.append("clock wrong")
    if standing.is_reload_failed:
        parts.append("last reload failed, see the log")
    return parts


def _draining(standing: ServingSummary) -> list[str]:
    in_flight = sum(one.in_flight for one in standing.statuses)
    parts = [f"{in_flight} in flight"]
    if in_flight:
        parts.append(f"oldest {max(one.oldest_seconds for one in standing.statuses):.1f} s")
    if standing.seconds_left is not None:
        parts.append(f"{max(0.0, standing.seconds_left):.0f} s left")
    return parts
