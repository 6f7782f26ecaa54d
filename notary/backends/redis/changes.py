"""The reads and changes of one unit in Redis: reads happen at once, changes when the unit is complete.

The step that applies the changes compares the reads with Redis again (`APPLY` in notary/backends/redis/scripts.py).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from notary.backends.redis.client import Client
from notary.store.contract import StoreGone


class Outdated(Exception):
    """A value that the unit has read has changed since: no change was applied, and the unit has to be repeated."""


class StoreLost(Exception):
    """The Redis is not the one that the ledger remembers, or has lost its data."""


@dataclass(slots=True)
class Changes:
    """The changes of one unit. `check` raises if Redis can't be used now."""

    client: Client
    check: Callable[[], None]
    epoch: int
    proof_ms: str
    checks: list[list[str | None]] = field(default_factory=list)
    """Answers of read commands, each with its command."""
    proofs: list[str] = field(default_factory=list)
    steps: list[list[str]] = field(default_factory=list)
    raised: int | None = None
    """The epoch that the unit raises to."""
    revoked: dict[str, float] = field(default_factory=dict)
    """Sessions, and when their leases end."""
    is_touched: bool = False

    def touch(self) -> None:
        """The unit depends on Redis. Raises StoreLost or StoreGone."""
        if not self.is_touched:
            self.check()
            self.is_touched = True

    def read(self, *command: str) -> str | None:
        """Run a read command that answers one text or number; applying the unit requires the same answer."""
        return self.read_all([command])[0]

    def read_all(self, commands: Sequence[tuple[str, ...]]) -> list[str | None]:
        """Several of them at once."""
        self.touch()
        answers = self.client.many(commands) if len(commands) > 1 else [self.client.call(*commands[0])]
        texts = [None if answer is None else str(answer) for answer in answers]
        self.checks += [[answer, *command] for answer, command in zip(texts, commands, strict=True)]
        return texts

    def look(self, *command: str) -> Any:
        """A read command whose answer need not stay the same."""
        self.touch()
        return self.client.call(*command)

    def step(self, kind: str, *values: str) -> None:
        """One change, by a name of notary/backends/redis/scripts.py."""
        self.touch()
        self.steps.append([kind, *values])


def number(text: str | None) -> int:
    """A number in Redis; 0 if it is missing. Raises StoreGone for another text."""
    try:
        return int(text or 0)
    except ValueError:
        raise StoreGone("Redis: a number that makes no sense") from None


def milliseconds(seconds: float) -> str:
    """For a TTL: one at least."""
    return str(max(1, round(seconds * 1000)))
