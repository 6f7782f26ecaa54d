"""`audit summary`: calls over time as bars, the busiest actions and principals, sums of kept values."""

import shutil
import sys
from collections.abc import Sequence
from typing import Any, Final

import click

from gateway_client.cli.commands.audit import audit
from gateway_client.cli.desk import CliContext, Group, pass_desk
from gateway_client.cli.display.output import Output, note
from gateway_client.cli.display.safe import plain, short
from gateway_client.cli.display.times import bound
from gateway_client.contract.activity import AuditSummary, DecisionCounts

_PARTS: Final = (("allow", "#", "█"), ("pending_approval", "?", "▒"), ("deny", "x", "░"), ("error", "!", "▚"))
"""Decision, and what fills its part of a bar: in plain ASCII, and in UTF-8."""
_NAMES: Final = {"pending_approval": "held"}
_MOST_NAMES: Final = 10
_BAR, _LEAST_BAR = 48, 8
_NAME: Final = 48


def add_to(_cli: Group) -> None:
    """The command hangs in `audit` already."""


@audit.command("summary")
@click.option("--after", metavar="TIME", help="From the hour or day of this time: ISO 8601, or 6h, 2d ago.")
@click.option("--before", metavar="TIME", help="Up to this time.")
@click.option("--step", type=click.Choice(("hour", "day")), default="hour", show_default=True)
@pass_desk
def summary(desk: CliContext, after: str | None, before: str | None, step: str) -> None:
    """Show calls over time, the busiest actions and principals. The last 24 hours, or 30 days, by default."""
    with desk.operator() as operator:
        shown = operator.audit_summary(
            after=None if after is None else bound(after), before=None if before is None else bound(before), step=step
        )
    if desk.is_json:
        desk.out.document(shown.raw)
        return
    if not shown.complete:
        note("events of an earlier version are still being counted: the numbers will grow")
    _tell(desk.out, shown)


def _tell(out: Output, shown: AuditSummary) -> None:
    width = shutil.get_terminal_size().columns if out.is_terminal else 100
    is_plain = not out.is_terminal or (sys.stdout.encoding or "").lower().replace("-", "") != "utf8"
    out.line("  ".join(f"{_fill(part, is_plain)} {_NAMES.get(part[0], part[0])}" for part in _PARTS))
    most = max((_total(one.counts) for one in shown.buckets), default=0)
    length = 16 if shown.step == "hour" else 10
    room = _room(width, length + len(str(most)) + 4)
    for bucket in shown.buckets:
        total = _total(bucket.counts)
        start = plain(bucket.start)[:length].replace("T", " ")
        out.line(f"{start}  {total:>{len(str(most))}}  {_stacked(bucket.counts, most, room, is_plain)}".rstrip())
    sums = [(name, sum(_count(one.counts, name) for one in shown.buckets)) for name, _, _ in _PARTS]
    out.line(f"total (UTC)  {'  '.join(f'{_NAMES.get(name, name)} {count}' for name, count in sums)}")
    _tell_busiest(out, "actions", [(one.action_id, one.count) for one in shown.actions], width, is_plain)
    _tell_busiest(out, "principals", [(one.principal, one.count) for one in shown.principals], width, is_plain)
    if shown.sums:
        out.line()
        rows: list[Sequence[Any]] = [(one.action_id, one.pointer, one.sum) for one in shown.sums]
        out.table(("ACTION", "VALUE", "SUM"), rows, "no sums")


def _tell_busiest(
    out: Output, title: str, counted: Sequence[tuple[str | None, int]], width: int, is_plain: bool
) -> None:
    if not counted:
        return
    named = [(short(plain(name), _NAME), count) for name, count in counted if name is not None]
    rest = sum(count for name, count in counted if name is None) + sum(count for _, count in named[_MOST_NAMES:])
    rows = [*named[:_MOST_NAMES], *([("others", rest)] if rest else [])]
    out.line()
    out.line(f"busiest {title}")
    longest, digits = max(len(name) for name, _ in rows), len(str(max(count for _, count in rows)))
    room, most = _room(width, longest + digits + 6), max(count for _, count in rows)
    for name, count in rows:
        bar = _fill(_PARTS[0], is_plain) * _cells(count, most, room)
        out.line(f"  {name.ljust(longest)}  {count:>{digits}}  {bar}")


def _stacked(counts: DecisionCounts, most: int, room: int, is_plain: bool) -> str:
    """A bar with a part for each decision; a part that is not empty has a cell at least."""
    return "".join(_fill(part, is_plain) * _cells(_count(counts, part[0]), most, room) for part in _PARTS)


def _cells(count: int, most: int, room: int) -> int:
    return 0 if count <= 0 else max(1, round(room * count / most))


def _room(width: int, used: int) -> int:
    """Cells of the longest bar: a part that is rounded up may take three more."""
    return max(_LEAST_BAR, min(_BAR, width - used - 3))


def _fill(part: tuple[str, str, str], is_plain: bool) -> str:
    return part[1] if is_plain else part[2]


def _count(counts: DecisionCounts, name: str) -> int:
    value = getattr(counts, name)
    return value if isinstance(value, int) else 0


def _total(counts: DecisionCounts) -> int:
    return sum(_count(counts, name) for name, _, _ in _PARTS)
