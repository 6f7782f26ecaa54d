"""What the notary keeps between two units: keys, clock, the head of the chain, the epoch, and what is under way."""

from dataclasses import dataclass, field

from ipc.clock import Clock
from ipc.settings import Settings
from notary.backends.sqlite import Database
from notary.ledger.intents import OpenIntent
from notary.ledger.outbox import Backlog
from notary.ledger.schema import Head
from notary.signing.rotation import Signers

MAX_KNOWN_INTENTS = 16_384
"""Open intents kept in memory; others are read from the database when they are closed."""


@dataclass(slots=True)
class State:
    """One notary. What is here follows what was committed, and never goes before it."""

    settings: Settings
    clock: Clock
    database: Database
    signers: Signers
    backlog: Backlog
    head: Head | None = None
    """None: read it again."""
    epoch: int | None = None
    """None: read it again."""
    is_failing: bool = False
    """The last unit could not be written."""
    intents: dict[str, OpenIntent] = field(default_factory=dict)
    """Under way, by id."""
    fronts: set[str] = field(default_factory=set)
    """Ids of those that have a channel."""

    def forget(self) -> None:
        """Believe the database alone, after something that failed."""
        self.head = self.epoch = None
        self.intents.clear()
