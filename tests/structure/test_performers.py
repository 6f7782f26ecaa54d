"""Every operation that a channel accepts is performed by one function, and the notary performs nothing else."""

from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_type_hints

import pytest

from ipc.operations.askable import OF_DELIVERERS, OF_EXPORTERS, OF_FRONTS
from ipc.operations.calls import Recall, UseProof
from ipc.operations.operation import DelivererOperation, ExporterOperation, FrontOperation, Operation, answer_type
from notary.operations import table
from notary.operations.table import MODULES, PERFORMERS
from notary.units.performing import performs
from notary.units.tasks import Looking, SecretAnswer, Started
from notary.units.transaction import Transaction

ACCEPTED = {*OF_FRONTS, *OF_DELIVERERS, *OF_EXPORTERS}
WITHOUT_UNIT = {Recall}
"""The service passes it to the workers' channels: nothing is written or read for it."""
NOT_YET = {Started, Looking, SecretAnswer}
"""An answer that follows later, or is made from what is kept."""


def test_every_operation_that_a_channel_accepts_has_a_function() -> None:
    assert ACCEPTED & PERFORMERS.keys() == ACCEPTED - WITHOUT_UNIT


def test_the_notary_performs_nothing_else_but_the_operations_that_it_declares_itself() -> None:
    own = PERFORMERS.keys() - ACCEPTED
    assert all(operation.__module__.startswith("notary.") for operation in own)
    assert not any(issubclass(operation, FrontOperation | DelivererOperation | ExporterOperation) for operation in own)


def test_a_second_function_for_an_operation_is_refused() -> None:
    with pytest.raises(ValueError, match="UseProof has two functions"):
        performs(UseProof)(lambda unit, asked: None)


def test_every_module_that_performs_something_is_imported_by_the_table() -> None:
    folder = Path(str(table.__file__)).parent
    performing = {path.stem for path in folder.glob("*.py") if "@performs(" in path.read_text()}
    assert performing == {module.__name__.rpartition(".")[2] for module in MODULES}


@pytest.mark.parametrize("operation", PERFORMERS, ids=lambda one: one.__name__)
def test_a_function_takes_its_operation_and_answers_as_that_declares(operation: type[Operation[Any]]) -> None:
    hints = get_type_hints(PERFORMERS[operation].perform)
    answers, declared = _members(hints.pop("return")), _members(answer_type(operation))
    assert list(hints.values()) == [Transaction, operation]
    assert answers - NOT_YET <= declared
    assert answers & NOT_YET or answers == declared


def _members(kind: Any) -> set[Any]:
    return set(get_args(kind)) if isinstance(kind, UnionType) else {kind}
