"""The parts of the matrix of faults: a table for each dependency, a row for each way in which it fails, a cell for each
operation on the gateway meanwhile."""

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
"""The answers without a fault: a status with its error code, or with the word in the body for it."""


@dataclass(frozen=True)
class Row:
    """A fault under which the gateway serves."""

    seen: str
    """The description of the fault as an operator sees it, and as the tests cause it."""
    do: str
    """The operator's remedy."""
    answers: Mapping[str, str] = field(default_factory=dict)
    """Operation -> answer, where it differs from the answer without a fault."""
    metrics: tuple[str, ...] = ()
    """Samples of /metrics, summed over labels that are not named: `NAME{LABELS} VALUE`, or `NAME{LABELS} rises`."""
    log: str = ""
    """Words of a line of the log; empty if no line is written."""
    first: str = "execute with a budget"
    """The operation that meets the fault first."""
    ends_leases: bool = False
    """True if earlier leases and holds end."""
    ends_hold: bool = False
    """True if an approval that fails by the fault is over, though nothing was dispatched."""

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
