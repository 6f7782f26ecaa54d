"""Channels as pairs of directions: the table for receiving determines the table for sending.

One pair per channel, for both of its ends. Guarantees that every channel checks the messages that it sends.
"""

from ipc.channel.protocol_states import (
    BROKER_TO_FRONT,
    BROKER_TO_SUPERVISOR,
    DELIVERER_TO_NOTARY,
    DELIVERER_TO_SUPERVISOR,
    EXPORTER_TO_FRONT,
    EXPORTER_TO_NOTARY,
    EXPORTER_TO_SUPERVISOR,
    FRONT_TO_BROKER,
    FRONT_TO_EXPORTER,
    FRONT_TO_NOTARY,
    FRONT_TO_POLICY,
    FRONT_TO_READER,
    FRONT_TO_SUPERVISOR,
    FRONT_TO_WORKER,
    NOTARY_TO_DELIVERER,
    NOTARY_TO_EXPORTER,
    NOTARY_TO_FRONT,
    NOTARY_TO_SUPERVISOR,
    NOTARY_TO_WORKER,
    POLICY_TO_FRONT,
    READER_TO_FRONT,
    SUPERVISOR_TO_BROKER,
    SUPERVISOR_TO_DELIVERER,
    SUPERVISOR_TO_EXPORTER,
    SUPERVISOR_TO_FRONT,
    SUPERVISOR_TO_NOTARY,
    SUPERVISOR_TO_TEMPLATE,
    TEMPLATE_TO_SUPERVISOR,
    WORKER_TO_FRONT,
    WORKER_TO_NOTARY,
    ProtocolState,
    Table,
)

_OPPOSITES: dict[int, tuple[Table, str]] = {}
"""By the identity of the table for receiving: the table for sending and its first state."""


def pair(one: Table, one_start: str, other: Table, other_start: str) -> None:
    """Make two directions one channel. The states are those in which each begins."""
    _OPPOSITES[id(one)] = (other, other_start)
    _OPPOSITES[id(other)] = (one, one_start)


def sessions_of(table: Table, start: str) -> tuple[ProtocolState, ProtocolState]:
    """The sessions of one end that receives by `table`: for what it receives, and for what it sends.

    Raises LookupError for a table that is no direction of a channel.
    """
    if id(table) not in _OPPOSITES:
        raise LookupError("this table is no direction of a channel: see pair()")
    return ProtocolState(table, start), ProtocolState(*_OPPOSITES[id(table)])


pair(FRONT_TO_WORKER, "open", WORKER_TO_FRONT, "starting")
pair(FRONT_TO_POLICY, "empty", POLICY_TO_FRONT, "open")
pair(SUPERVISOR_TO_FRONT, "new", FRONT_TO_SUPERVISOR, "starting")
pair(SUPERVISOR_TO_TEMPLATE, "new", TEMPLATE_TO_SUPERVISOR, "starting")
pair(SUPERVISOR_TO_NOTARY, "new", NOTARY_TO_SUPERVISOR, "starting")
pair(FRONT_TO_NOTARY, "open", NOTARY_TO_FRONT, "new")
pair(SUPERVISOR_TO_DELIVERER, "new", DELIVERER_TO_SUPERVISOR, "starting")
pair(DELIVERER_TO_NOTARY, "open", NOTARY_TO_DELIVERER, "new")
pair(SUPERVISOR_TO_BROKER, "new", BROKER_TO_SUPERVISOR, "starting")
pair(FRONT_TO_BROKER, "open", BROKER_TO_FRONT, "open")
pair(SUPERVISOR_TO_EXPORTER, "new", EXPORTER_TO_SUPERVISOR, "starting")
pair(EXPORTER_TO_NOTARY, "open", NOTARY_TO_EXPORTER, "new")
pair(FRONT_TO_EXPORTER, "open", EXPORTER_TO_FRONT, "open")
pair(NOTARY_TO_WORKER, "new", WORKER_TO_NOTARY, "open")
pair(FRONT_TO_READER, "new", READER_TO_FRONT, "walking")
