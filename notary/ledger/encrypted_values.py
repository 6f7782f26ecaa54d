"""Kept values as a SQLite file stores them: encrypted, with a key for each small group (notary/ledger/key_pages.py).

An encrypted row has in `value` the number of its key and a keyed hash of the kept value, by which it is found; `salt`
holds the encrypted salt and value. Values in other databases, in segments and in files of an earlier version stand as
they are: the canonical JSON of a value never begins with a zero byte, and the number of a key always does. Functions of
a connection inside an open transaction.
"""

from collections.abc import Collection, Iterable, Sequence
from hashlib import blake2b
from typing import Any, Final

from ipc.evidence.kept_values import SALT_BYTES
from notary.database import DatabaseGone, OpenTransaction
from notary.ledger.key_pages import KeyPages, KeyReader, decrypted, encrypted

GROUP: Final = 64
"""Values of one key. An erasing encrypts the rest of each group anew that loses a value; a search hashes the value that
is looked for with each key."""
VALUE_KEYS: Final = KeyPages("kept_keys")
_NUMBER_BYTES: Final = 8
_HASH_BYTES: Final = 16
FOUND_BY_BYTES: Final = _NUMBER_BYTES + _HASH_BYTES
"""Length of `value` in an encrypted row."""
_PURPOSE: Final = b"kept value"
_NEWEST: Final = "SELECT value FROM kept_values WHERE value < x'01' ORDER BY value DESC LIMIT 1"
_COUNT: Final = "SELECT count(*) FROM kept_values WHERE value >= ? AND value < ?"
_GROUP: Final = "SELECT key, pointer, value, salt FROM kept_values WHERE value >= ? AND value < ?"
_RENEW: Final = "UPDATE kept_values SET value = ?, salt = ? WHERE key = ? AND pointer = ?"

LivingKeys = Sequence[tuple[int, bytes]]
"""Number and key of each that values may be encrypted with."""


class ValueOpener:
    """Reads the values of rows within one transaction."""

    def __init__(self, connection: OpenTransaction) -> None:
        self._keys = KeyReader(VALUE_KEYS, connection)

    def opened(self, value: Any, salt: Any) -> tuple[bytes, bytes] | None:
        """Value and salt as they were kept, given those of a row. None for a row that can't be read: its key is gone,
        it was changed, or it has not both."""
        if not isinstance(value, bytes | memoryview) or not isinstance(salt, bytes | memoryview):
            return None
        value, salt = bytes(value), bytes(salt)
        number = number_of(value)
        if number is None:
            return value, salt
        key, cipher = self._keys.key(number), self._keys.cipher(number)
        content = None if cipher is None else decrypted(cipher, salt)
        if key is None or content is None or value != found_by(number, key, content[SALT_BYTES:]):
            return None
        return content[SALT_BYTES:], content[:SALT_BYTES]


def number_of(value: bytes) -> int | None:
    """The number of the key of a row, given its value. None where the value stands as it is."""
    return int.from_bytes(value[:_NUMBER_BYTES]) if value[:1] == b"\0" else None


def found_by(number: int, key: bytes, value: bytes) -> bytes:
    """`value` of a row with this kept value and key."""
    hashed = blake2b(value, key=key, digest_size=_HASH_BYTES, person=_PURPOSE).digest()
    return _prefix(number) + hashed


def encrypted_all(
    connection: OpenTransaction, values: Iterable[tuple[bytes, bytes]], dying: Collection[int] = ()
) -> list[tuple[bytes, bytes]]:  # fmt: skip
    """`value` and `salt` of the rows of these values and salts, in their order: with the newest key until its group is
    full, and then with new ones. Not with `dying` keys. A caller writes all these rows before it asks again."""
    stored = list[tuple[bytes, bytes]]()
    number, used = _newest(connection)
    keys = KeyReader(VALUE_KEYS, connection)
    if number in dying or keys.key(number) is None:
        used = GROUP
    for value, salt in values:
        if used >= GROUP:
            number, used = VALUE_KEYS.make(connection), 0
            keys = KeyReader(VALUE_KEYS, connection)
        key, cipher = keys.key(number), keys.cipher(number)
        if key is None or cipher is None:
            raise DatabaseGone("a key of kept values is gone that was just written")
        stored.append((found_by(number, key, value), encrypted(cipher, salt + value)))
        used += 1
    return stored


def forget_keys(connection: OpenTransaction, numbers: Collection[int]) -> None:
    """SECURITY: values of rows with these keys have left their table. The values that are left get other keys, and
    these are overwritten, so that no copy of an earlier row can be read. Does nothing without a number."""
    if not numbers:
        return
    opener = ValueOpener(connection)
    left = list[tuple[str, str]]()
    values = list[tuple[bytes, bytes]]()
    for number in numbers:
        for key, pointer, *row in connection.execute(_GROUP, (_prefix(number), _prefix(number + 1))).fetchall():
            if (one := opener.opened(*row)) is not None:
                left.append((key, pointer))
                values.append(one)
    stored = encrypted_all(connection, values, dying=numbers)
    connection.executemany(_RENEW, [(*one, *place) for one, place in zip(stored, left, strict=True)])
    VALUE_KEYS.drop(connection, numbers)


def _newest(connection: OpenTransaction) -> tuple[int, int]:
    """The number of the newest key that a row has, and how many rows have it; (0, GROUP) if none has one."""
    row = connection.execute(_NEWEST).fetchone()
    if row is None:
        return 0, GROUP
    number = number_of(row[0]) or 0
    (count,) = connection.execute(_COUNT, (_prefix(number), _prefix(number + 1))).fetchone()
    return number, int(count)


def _prefix(number: int) -> bytes:
    return number.to_bytes(_NUMBER_BYTES)
