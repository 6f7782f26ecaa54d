"""Operations: each declares the type of its answer, and is accepted over the channels of one kind of process."""

from pathlib import Path
from pkgutil import iter_modules

import msgspec
import pytest

from ipc import operations
from ipc.evidence.records import EventQuery
from ipc.messages.delivering import AskedByDeliverer
from ipc.messages.event_reading import AskedByExporter
from ipc.messages.notary_frames import NumberedOperation
from ipc.operations.askable import MODULES, OF_DELIVERERS, OF_EXPORTERS, OF_FRONTS
from ipc.operations.calls import CallEnd, Open
from ipc.operations.deliveries import ClaimDeliveries, NextDelivery
from ipc.operations.evidence import QueryEvents
from ipc.operations.exporting import NextEvents
from ipc.operations.keys import CheckKeys
from ipc.operations.operation import Operation, answer_type
from notary.operations.closing import Lost


def test_every_operation_is_accepted_from_processes_of_one_kind() -> None:
    declared = {
        one
        for module in MODULES
        for one in vars(module).values()
        if isinstance(one, type) and issubclass(one, Operation) and one.__module__ == module.__name__
    }
    of_kinds = (*OF_FRONTS, *OF_DELIVERERS, *OF_EXPORTERS)
    assert declared == {*of_kinds}
    assert len(declared) == len(of_kinds)


def test_every_module_of_operations_is_read_for_what_may_be_asked() -> None:
    modules = {one.name for one in iter_modules(operations.__path__)} - {"operation", "askable"}
    assert {Path(str(module.__file__)).stem for module in MODULES} == modules


@pytest.mark.parametrize("operation", [*OF_FRONTS, *OF_DELIVERERS, *OF_EXPORTERS], ids=lambda one: one.__name__)
def test_the_answer_of_every_operation_can_be_decoded(operation: type[Operation[object]]) -> None:
    msgspec.msgpack.Decoder(answer_type(operation))


def test_the_type_of_an_answer_is_what_its_operation_declares() -> None:
    assert (answer_type(Open), answer_type(CheckKeys)) == (CallEnd, list[str])


def test_an_operation_of_another_session_or_of_the_notary_itself_is_no_message() -> None:
    asked = {
        NumberedOperation: (ClaimDeliveries("chat", 0, 0, 1), NextEvents(), Lost("int_1", "gone")),
        AskedByDeliverer: (CheckKeys(), NextEvents()),
        AskedByExporter: (CheckKeys(), NextDelivery("chat"), QueryEvents(EventQuery()), Lost("int_1", "gone")),
    }
    for frame, operations_ in asked.items():
        for operation in operations_:
            encoded = msgspec.msgpack.encode(frame(1, operation))
            with pytest.raises(msgspec.ValidationError):
                msgspec.msgpack.decode(encoded, type=frame)
