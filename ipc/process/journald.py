"""Log lines as entries of the system's journal, with their fields as fields of the journal.

Source: systemd, "Native Journal Protocol": one datagram an entry. Used only where standard error is the journal's
(JOURNAL_STREAM names it), so that a file or pipe in its place still gets every line. Guarantees that the caller learns
of an entry which the journal does not take at once, and writes the line instead.
"""

import os
import re
import socket
import struct
from collections.abc import Mapping
from functools import cache

SOCKET = "/run/systemd/journal/socket"
IDENTIFIER = "gateway"
MAX_ENTRY_BYTES = 65536
"""A datagram takes at least this. A longer entry is written as a line, which the journal cuts as it does all lines."""
PRIORITIES = {"debug": 7, "info": 6, "warning": 4, "error": 3}
"""Priorities of syslog(3)."""

_STDERR = 2
_NAME = re.compile(r"[A-Z][A-Z0-9_]{0,63}")


def is_journal(stream: str, descriptor: int = _STDERR) -> bool:
    """Whether `stream`, as JOURNAL_STREAM has it, names what this descriptor leads to."""
    try:
        status = os.fstat(descriptor)
    except OSError:
        return False
    return stream == f"{status.st_dev}:{status.st_ino}"


def encode_entry(level: str, message: str, fields: Mapping[str, str]) -> bytes:
    """One entry. Names become upper case; a field whose name the journal would not take is left out."""
    entry = bytearray()
    fixed = {"MESSAGE": message, "PRIORITY": str(PRIORITIES.get(level, 5)), "SYSLOG_IDENTIFIER": IDENTIFIER}
    for name, value in fields.items():
        upper = name.upper()
        if upper not in fixed and _NAME.fullmatch(upper):
            _add(entry, upper, value)
    for name, value in fixed.items():
        _add(entry, name, value)
    return bytes(entry)


def _add(entry: bytearray, name: str, value: str) -> None:
    data = value.encode(errors="backslashreplace")
    if b"\n" in data:
        entry += name.encode() + b"\n" + struct.pack("<Q", len(data)) + data + b"\n"
    else:
        entry += name.encode() + b"=" + data + b"\n"


class JournaldSocket:
    """The journal's socket. Each entry names its address anew, so that a journal that is started again is reached."""

    def __init__(self, address: str = SOCKET) -> None:
        """Raises OSError."""
        self._address = address
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)

    def write(self, level: str, message: str, fields: Mapping[str, str]) -> bool:
        """Write one entry; False when the journal did not take it."""
        entry = encode_entry(level, message, fields)
        if len(entry) > MAX_ENTRY_BYTES:
            return False
        try:
            self._socket.sendto(entry, socket.MSG_DONTWAIT, self._address)
        except OSError:
            return False
        return True

    def close(self) -> None:
        """Let go of the socket."""
        self._socket.close()


@cache
def own_journal() -> JournaldSocket | None:
    """The journal, where it takes what this process writes to standard error."""
    stream = os.environ.get("JOURNAL_STREAM", "")
    if not stream or not is_journal(stream):
        return None
    try:
        return JournaldSocket()
    except OSError:
        return None
