"""The operation of the exporter: events in the order of the chain."""

from ipc.operations.exporting import FollowingEvents, NextEvents
from notary.reading.following import Following, continues, end_of, follow
from notary.units.performing import performs
from notary.units.transaction import Transaction


@performs(NextEvents, is_paced=True)
def next_events(unit: Transaction, asked: NextEvents) -> FollowingEvents:
    """See NextEvents. SECURITY: what the exporter says of itself decides nothing but what it is given."""
    export = unit.state.export
    after = export.begin() if asked.after is None else asked.after
    found = follow(unit.connection, after)
    if found is None:
        place = next((one for one in export.reached if continues(unit.connection, one)), export.opened_at)
        found = follow(unit.connection, place) or Following(end_of(unit.connection), [])
        export.change(after, found.after)
    elif found.skipped:
        export.skip(found.skipped, found.after)
    export.note(found.after, asked.exported, asked.dropped)
    return FollowingEvents(found.after, found.events)
