"""All operations that the notary performs, as `@performs` declares them in the modules that are imported here."""

from typing import Final

from notary.operations import (
    aging,
    approving,
    capping,
    closing,
    cutting,
    delivering,
    erasing,
    exporting,
    holding,
    idempotency,
    leases_and_keys,
    moving,
    opening,
    own_calls,
    proving,
    queries,
    reconciling,
    refusing,
    sessions,
    standing,
    summarising,
    verifying,
    witnessing,
)
from notary.units.performing import PERFORMERS

__all__ = ["MODULES", "PACED", "PERFORMERS", "PROVING", "WRITING"]

MODULES: Final = (
    aging, approving, capping, closing, cutting, delivering, erasing, exporting, holding, idempotency, leases_and_keys,
    moving, opening, own_calls, proving, queries, reconciling, refusing, sessions, standing, summarising, verifying,
    witnessing,
)  # fmt: skip
WRITING: Final = frozenset(operation for operation, one in PERFORMERS.items() if one.writes)
PROVING: Final = frozenset(operation for operation, one in PERFORMERS.items() if one.proves)
PACED: Final = frozenset(operation for operation, one in PERFORMERS.items() if one.is_paced)
