"""`@performs` declares the function that performs an operation, and what the notary must know before it calls it."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeVar

from ipc.operations.operation import Operation
from notary.units.transaction import Handler, Transaction

O = TypeVar("O", bound=Operation[Any])  # noqa: E741
R = TypeVar("R")


class Performer(NamedTuple):
    """The function that performs one operation."""

    perform: Handler
    writes: bool = False
    """Its answer is remembered, and sent once the unit is durable."""
    settles: bool = False
    """It reads tables that calls write: the journal is settled into them before."""
    proves: bool = False
    """A checkpoint of everything that is durable is signed before."""
    is_paced: bool = False
    """It waits for its turn among the reads of all callers (notary/upkeep/pace.py)."""


_performers: dict[type[Operation[Any]], Performer] = {}
PERFORMERS: Final[Mapping[type[Operation[Any]], Performer]] = MappingProxyType(_performers)
"""Complete once notary/operations/table.py is imported."""


def performs(
    operation: type[O], *, writes: bool = False, settles: bool = False, proves: bool = False, is_paced: bool = False
) -> Callable[[Callable[[Transaction, O], R]], Callable[[Transaction, O], R]]:
    """Declare that the function below performs this operation. Raises ValueError if another one does."""

    def register(perform: Callable[[Transaction, O], R]) -> Callable[[Transaction, O], R]:
        if operation in _performers:
            raise ValueError(f"{operation.__name__} has two functions")
        _performers[operation] = Performer(perform, writes, settles, proves, is_paced)
        return perform

    return register
