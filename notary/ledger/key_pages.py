"""Keys of small groups of rows, in a SQLite file: once a key is overwritten, no copy of its rows can be read.

SQLite moves rows between pages, and copies of them stay in the free room of pages that were split. So rows that are
erased later are encrypted, and their keys lie in overflow pages, which are never moved (notary/store/own_pages.py).
Functions of a connection inside an open transaction.
"""

import os
from collections.abc import Collection
from typing import Any, Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from notary.database import OpenTransaction
from notary.store.own_pages import ROOM, erasing

KEY_BYTES: Final = 32
IN_PAGE: Final = 4092 // KEY_BYTES
"""Keys of one row: an overflow page holds 4092 bytes (the SQLite file format, "Cell Payload Overflow Pages")."""
_NONE: Final = bytes(KEY_BYTES)
_EMPTY: Final = _NONE * IN_PAGE
_MOST_PAGES: Final = 2**40
_NONCE_BYTES: Final = 12


class KeyPages:
    """A table of keys by number: a row has IN_PAGE keys, zeros in free places. A number is the row's times IN_PAGE,
    and the place in it."""

    def __init__(self, table: str) -> None:
        """The name of the table, which is no caller's."""
        self.tables = (
            f"""
            CREATE TABLE IF NOT EXISTS {table} (
                page INTEGER PRIMARY KEY, {ROOM},
                keys BLOB NOT NULL
            ) STRICT
            """,
        )
        self.has_table = f"SELECT 1 FROM sqlite_master WHERE name = '{table}'"  # noqa: S608 - the name above
        self._all = f"SELECT page, keys FROM {table} WHERE page >= 0 AND page < {_MOST_PAGES}"  # noqa: S608
        self._newest = f"{self._all} ORDER BY page DESC LIMIT 1"
        self._page = f"SELECT keys FROM {table} WHERE page = ?"  # noqa: S608
        self._write = (
            f"INSERT INTO {table} (page, keys) VALUES (?, ?)"  # noqa: S608
            " ON CONFLICT (page) DO UPDATE SET keys = excluded.keys"
        )
        self._forget = f"DELETE FROM {table} WHERE page = ?"  # noqa: S608

    def make(self, connection: OpenTransaction) -> int:
        """The number of a new key: that behind the last one that is there."""
        row = connection.execute(self._newest).fetchone()
        page, keys = (0, _EMPTY) if row is None else row
        used = -(-len(keys.rstrip(b"\0")) // KEY_BYTES) if _is_whole(keys) else IN_PAGE
        if used == IN_PAGE:
            page, keys, used = page + 1, _EMPTY, 0
        self._put(connection, page, keys, {used: os.urandom(KEY_BYTES)})
        return int(page) * IN_PAGE + used

    def drop(self, connection: OpenTransaction, numbers: Collection[int]) -> None:
        """Overwrite these keys; a row without any is removed, but for the newest one."""
        places: dict[int, dict[int, bytes]] = {}
        for number in numbers:
            places.setdefault(number // IN_PAGE, {})[number % IN_PAGE] = _NONE
        for page, dropped in places.items():
            keys = self.page(connection, page)
            if keys is None:
                continue
            self._put(connection, page, keys, dropped)
            (newest, _) = connection.execute(self._newest).fetchone()
            if page != newest and self.page(connection, page) == _EMPTY:
                connection.execute(self._forget, (page,))

    def page(self, connection: OpenTransaction, page: int) -> bytes | None:
        """A row of keys; None if it is not there or damaged. Numbers in tables may be anything."""
        row = connection.execute(self._page, (page,)).fetchone() if page < _MOST_PAGES else None
        return bytes(row[0]) if row is not None and _is_whole(row[0]) else None

    def living(self, connection: OpenTransaction) -> list[tuple[int, bytes]]:
        """Number and key of each that is there; none in a database without the table."""
        if connection.execute(self.has_table).fetchone() is None:
            return []
        return [
            (page * IN_PAGE + place, key)
            for page, keys in connection.execute(self._all).fetchall() if _is_whole(keys)
            for place in range(IN_PAGE) if (key := _key_in(keys, place)) is not None
        ]  # fmt: skip

    def _put(self, connection: OpenTransaction, page: int, keys: bytes, changed: dict[int, bytes]) -> None:
        """SECURITY: the row keeps its length, and its page is written over; if SQLite took another page, the one
        before would be overwritten."""
        written = bytearray(keys)
        for place, key in changed.items():
            written[place * KEY_BYTES : (place + 1) * KEY_BYTES] = key
        with erasing(connection):
            connection.execute(self._write, (page, bytes(written)))


class KeyReader:
    """Ciphers of one table's keys within one transaction, each read once."""

    def __init__(self, pages: KeyPages, connection: OpenTransaction) -> None:
        self._pages, self._connection = pages, connection
        self._keys: dict[int, bytes | None] = {}
        self._ciphers: dict[int, AESGCM] = {}
        self._has_table: bool | None = None

    def key(self, number: int) -> bytes | None:
        """The key of this number; None if it is not there."""
        page, place = divmod(number, IN_PAGE)
        if page not in self._keys:
            if self._has_table is None:
                self._has_table = self._connection.execute(self._pages.has_table).fetchone() is not None
            self._keys[page] = self._pages.page(self._connection, page) if self._has_table else None
        keys = self._keys[page]
        return None if keys is None else _key_in(keys, place)

    def cipher(self, number: int) -> AESGCM | None:
        """The cipher with this key."""
        if number not in self._ciphers:
            key = self.key(number)
            if key is None:
                return None
            self._ciphers[number] = AESGCM(key)
        return self._ciphers[number]


def encrypted(cipher: AESGCM, content: bytes) -> bytes:
    """AES-256-GCM with a random nonce in front."""
    nonce = os.urandom(_NONCE_BYTES)
    return nonce + cipher.encrypt(nonce, content, None)


def decrypted(cipher: AESGCM, stored: bytes) -> bytes | None:
    """None for bytes that were not encrypted with this key."""
    try:
        return cipher.decrypt(stored[:_NONCE_BYTES], stored[_NONCE_BYTES:], None)
    except (InvalidTag, ValueError):
        return None


def _is_whole(keys: Any) -> bool:
    return isinstance(keys, bytes) and len(keys) == len(_EMPTY)


def _key_in(keys: bytes, place: int) -> bytes | None:
    key = keys[place * KEY_BYTES : (place + 1) * KEY_BYTES]
    return None if key == _NONE else key
