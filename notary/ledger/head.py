"""The head of the chain, as the table `meta` keeps it: how many events there are, and the hash of the last one."""

import msgspec

from notary.database import OpenTransaction


class Head(msgspec.Struct, frozen=True):
    """End of the chain: number of the last event, which is how many there are, and its hash."""

    seq: int = 0
    hash: str | None = None


_decode_head = msgspec.json.Decoder(Head).decode
_encode_head = msgspec.json.Encoder().encode


def read_head(connection: OpenTransaction) -> Head | None:
    """The head as the file has it; None when it is missing or unreadable."""
    row = connection.execute("SELECT value FROM meta WHERE key = 'head'").fetchone()
    try:
        return None if row is None else _decode_head(row[0])
    except (TypeError, RecursionError, msgspec.DecodeError):
        return None


def write_head(connection: OpenTransaction, head: Head) -> None:
    """Move the head; inside the transaction that wrote the events."""
    connection.execute("UPDATE meta SET value = ? WHERE key = 'head'", (_encode_head(head).decode(),))
