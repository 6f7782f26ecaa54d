"""The bases of all operations, and the type of an operation's answer."""

from typing import Any, Generic, TypeVar, get_args

import msgspec

A = TypeVar("A", covariant=True)


class Operation(msgspec.Struct, Generic[A], frozen=True, forbid_unknown_fields=True, tag=True):
    """A request to the notary that is answered with an `A`.

    No channel accepts a direct subclass: those are operations that the notary asks of itself.
    """


class FrontOperation(Operation[A], frozen=True):
    """An operation that fronts may ask."""


class DelivererOperation(Operation[A], frozen=True):
    """An operation that the deliverer of webhooks may ask. It may ask nothing else."""


class ExporterOperation(Operation[A], frozen=True):
    """An operation that the exporter may ask. It may ask nothing else."""


def answer_type(operation: type[Operation[Any]]) -> Any:
    """The `A` that an operation's class declares."""
    (base,) = operation.__orig_bases__  # type: ignore[attr-defined]  # every generic base leaves it
    return get_args(base)[0]
