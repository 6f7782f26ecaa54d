"""Where the numbers of one front's series lie: in memory that outlives the front and that other fronts read.

A series is a few numbers in a row; the list of names says whose they are. It only grows, and an entry counts once its
length is written, so that a reader finds whole entries, meanwhile and after a kill. Its front's successor keeps
counting from the same numbers: no count goes back. A series that finds no room is not counted.
"""

import struct
from collections.abc import Iterator
from typing import Final

import msgspec

from frontend.shared.memory import SharedMemory
from ipc.channel import front_memory as at

Labels = tuple[str, ...]

_LENGTH: Final = struct.Struct("<I")
_LOST: Final = 0
"""Where the numbers go of what finds no room."""
_LOST_CELLS: Final = 64
_PRIVATE_BYTES: Final = 4 * 1024 * 1024


class _Entry(msgspec.Struct, frozen=True, array_like=True):
    family: str
    labels: Labels
    start: int
    width: int


_encode = msgspec.msgpack.Encoder().encode
_decoder = msgspec.msgpack.Decoder(_Entry)


class Cells:
    """The series of one front. Code that knows a place reads and writes `numbers` there."""

    def __init__(self, numbers: memoryview, names: memoryview) -> None:
        """Works on bytes; series that are in them already are known at once."""
        self.numbers = numbers.cast("d")
        self._names = names
        self._at = 0
        self._free = _LOST_CELLS
        self._series: dict[str, dict[Labels, int]] = {}
        self._left: dict[tuple[str, Labels], int] = {}
        self.refresh()

    @staticmethod
    def of(memory: SharedMemory, number: int | None = None) -> "Cells":
        """Those of a front, this one unless its number is given."""
        area = memory.area(number)
        return Cells(memory.part(area.numbers, at.NUMBERS_BYTES), memory.part(area.names, at.NAMES_BYTES))

    @staticmethod
    def private() -> "Cells":
        """Cells that no other process reads."""
        return Cells(memoryview(bytearray(_PRIVATE_BYTES)), memoryview(bytearray(_PRIVATE_BYTES)))

    def of_family(self, family: str) -> dict[Labels, int]:
        """Where each series of a family begins. The very dict: what its owner takes out is not shown."""
        return self._series.setdefault(family, {})

    def place(self, family: str, labels: Labels, width: int) -> int:
        """Begin a series of `width` numbers, all 0; return its place."""
        start = self._left.pop((family, labels), None)
        if start is None:
            start = self._new(_Entry(family, labels, self._free, width))
        if start != _LOST:
            self.of_family(family)[labels] = start
        return start

    def leave(self, family: str, labels: Labels, width: int) -> None:
        """End a series. One of the same name may begin again, from 0."""
        start = self.of_family(family).pop(labels)
        self.clear(start, width)
        self._left[family, labels] = start

    def clear(self, start: int, width: int) -> None:
        """Set a series to 0."""
        for index in range(start, start + width):
            self.numbers[index] = 0

    def _new(self, entry: _Entry) -> int:
        encoded = _encode(entry)
        end = self._at + _LENGTH.size + len(encoded)
        if entry.start + entry.width > len(self.numbers) or end + _LENGTH.size > len(self._names):
            return _LOST
        self._names[self._at + _LENGTH.size : end] = encoded
        _LENGTH.pack_into(self._names, self._at, len(encoded))
        self._at, self._free = end, entry.start + entry.width
        return entry.start

    def refresh(self) -> None:
        """Learn of series that have begun since."""
        for entry in self._entries():
            self.of_family(entry.family)[entry.labels] = entry.start
            self._free = max(self._free, entry.start + entry.width)

    def _entries(self) -> Iterator[_Entry]:
        """SECURITY: another front wrote them, and may have been taken over: an invalid entry ends the list."""
        while self._at + _LENGTH.size <= len(self._names):
            (length,) = _LENGTH.unpack_from(self._names, self._at)
            begin = self._at + _LENGTH.size
            if not length or begin + length > len(self._names):
                return
            try:
                entry = _decoder.decode(self._names[begin : begin + length])
            except (msgspec.MsgspecError, UnicodeDecodeError):
                return
            if entry.start < _LOST_CELLS or entry.width < 1 or entry.start + entry.width > len(self.numbers):
                return
            self._at = begin + length
            yield entry
