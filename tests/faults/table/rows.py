"""What the matrix of faults is made of: a table for each dependency, a row for each way in which it fails, a cell for
each thing that people ask of a gateway meanwhile."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

START: Final = "down at start"
FAULTS: Final = (
    START, "refuses", "hangs", "resets in the middle", "garbage", "slow", "read-only", "full", "loses its data",
    "clock differs",
)  # fmt: skip
OPERATIONS: Final = (
    "lease", "lease with a budget", "execute", "execute with a budget", "approve", "poll", "receipt", "audit",
    "readiness", "status",
)  # fmt: skip
HEALTHY: Final = dict.fromkeys(OPERATIONS, "200") | {"readiness": "200 ready", "status": "200 ok"}
"""What is answered while all is well: a status with its error code, or with the word that the body has for it."""


@dataclass(frozen=True)
class Row:
    """A gateway that serves while this is so."""

    seen: str
    """What an operator sees of it, and what stands for it in the tests."""
    do: str
    """What an operator does."""
    answers: Mapping[str, str] = field(default_factory=dict)
    """Operation -> answer, where it is another one than while all is well."""
    metrics: tuple[str, ...] = ()
    """Samples of /metrics, summed over labels that are not named: `NAME{LABELS} VALUE`, or `NAME{LABELS} rises`."""
    log: str = ""
    """Words of a line of the log; empty where there is none."""
    first: str = "execute with a budget"
    """The operation that meets it first."""
    ends_leases: bool = False
    """What was issued and held before is over."""
    ends_hold: bool = False
    """An approval that fails by it is over, though nothing was dispatched."""

    def answer(self, operation: str) -> str:
        """The answer to this operation; ` or ` stands between answers that both are right."""
        return self.answers.get(operation, HEALTHY[operation])


@dataclass(frozen=True)
class Refused:
    """A start that ends at once."""

    seen: str
    do: str
    exit_code: int
    log: str
    """Words of its one sentence."""


@dataclass(frozen=True)
class Table:
    """All faults of one dependency: a row, a refused start, or why there is neither."""

    dependency: str
    intro: str
    rows: Mapping[str, Row | Refused | str]
