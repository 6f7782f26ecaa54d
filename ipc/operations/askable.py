"""Which operations may be asked over which channel: derived from their declarations."""

from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any, Final

from ipc.operations import (
    activity,
    calls,
    caps,
    deliveries,
    erasing,
    evidence,
    exporting,
    holds,
    idempotency,
    intents,
    keys,
    leases,
    own_calls,
    quorum,
    sealed,
    standing,
    status,
    witnesses,
)
from ipc.operations.operation import DelivererOperation, ExporterOperation, FrontOperation, Operation

MODULES: Final = (
    activity, calls, caps, deliveries, erasing, evidence, exporting, holds, idempotency, intents, keys, leases,
    own_calls, quorum, sealed, standing, status, witnesses,
)  # fmt: skip
"""SECURITY: an operation that is declared in any other module is accepted from no channel."""


def _declared(base: type[Operation[Any]]) -> tuple[type[Operation[Any]], ...]:
    return tuple(
        one
        for module in MODULES
        for one in vars(module).values()
        if isinstance(one, type) and issubclass(one, base) and one.__module__ == module.__name__
    )


OF_FRONTS: Final = _declared(FrontOperation)
OF_DELIVERERS: Final = _declared(DelivererOperation)
OF_EXPORTERS: Final = _declared(ExporterOperation)

if TYPE_CHECKING:
    AnyOfFront = FrontOperation[Any]
    AnyOfDeliverer = DelivererOperation[Any]
    AnyOfExporter = ExporterOperation[Any]
else:
    AnyOfFront = reduce(or_, OF_FRONTS)
    AnyOfDeliverer = reduce(or_, OF_DELIVERERS)
    AnyOfExporter = reduce(or_, OF_EXPORTERS)
