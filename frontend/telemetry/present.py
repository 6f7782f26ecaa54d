"""The present state of one front, written down once a second for the other fronts.

Counts are in frontend/telemetry/cells.py; this state ends with its front. It is at most a second old, and only fronts
that serve have one. A change of the egress proxy's list is written at once.
"""

import struct
from collections.abc import Iterable
from contextlib import suppress
from typing import Final

import msgspec
from msgspec.structs import replace

from frontend.shared.memory import MemoryLocked, SharedMemory
from ipc.channel import front_memory as at

_LENGTH: Final = struct.Struct("<I")
_ROOM: Final = at.NOW_BYTES - _LENGTH.size


class AnnouncedProcess(msgspec.Struct, frozen=True, array_like=True):
    """A process that a front knows: its name in metrics, and its pid."""

    kind: str
    number: str
    pid: int


class Present(msgspec.Struct, frozen=True):
    """The present state of one front."""

    gauges: dict[str, list[tuple[tuple[str, ...], float]]] = {}
    """Name of a family -> its series."""
    processes: tuple[AnnouncedProcess, ...] = ()
    proportional: int | None = None
    """Bytes of the front's own memory, shared pages divided: the kernel tells a process only its own."""
    remembered: int = 0
    """Decisions of policy that it has in memory."""
    has_policy: bool = True
    """Whether its policy process answers."""
    coming: tuple[str, ...] = ()
    """Rules of domains that are about to count here: no front takes them from the egress proxy's list."""


_encode = msgspec.msgpack.Encoder().encode
_decoder = msgspec.msgpack.Decoder(Present)


class Presence:
    """Writes down this front's, and reads the others'."""

    def __init__(self, memory: SharedMemory) -> None:
        self._memory = memory
        self._present = Present()

    @property
    def is_alone(self) -> bool:
        """There is no other front that could read it."""
        return not self._memory.others

    @property
    def serving(self) -> list[int]:
        """Numbers of the other fronts that serve."""
        return [number for number in self._memory.others if self._memory.is_serving(number)]

    def tell(self, present: Present) -> None:
        """Write it down, with what was said to be coming; what finds no room, or is locked, is left out whole."""
        self._present = replace(present, coming=self._present.coming)
        self._write(self._present)

    def tell_coming(self, rules: Iterable[str]) -> None:
        """These rules of domains are about to count here, and no others: seen by the other fronts at once."""
        self._present = replace(self._present, coming=tuple(rules))
        self._write(self._present)

    def coming(self) -> frozenset[str]:
        """Rules of domains that are about to count in other fronts."""
        return frozenset(rule for other in self.others().values() for rule in other.coming)

    def _write(self, present: Present) -> None:
        encoded = _encode(present)
        if len(encoded) > _ROOM:
            return
        start = self._memory.area().now
        with suppress(MemoryLocked), self._memory.lock(start):  # it is written again within a second
            part = self._memory.part(start, at.NOW_BYTES)
            part[_LENGTH.size : _LENGTH.size + len(encoded)] = encoded
            _LENGTH.pack_into(part, 0, len(encoded))

    def others(self) -> dict[int, Present]:
        """The states of the other fronts that serve, by number. SECURITY: one that is invalid or locked is ignored."""
        others = {}
        for number in self.serving:
            try:
                others[number] = _decoder.decode(self._read(number))
            except (msgspec.MsgspecError, UnicodeDecodeError, MemoryLocked):
                continue
        return others

    def _read(self, number: int) -> bytes:
        start = self._memory.area(number).now
        with self._memory.lock(start):
            part = self._memory.part(start, at.NOW_BYTES)
            (length,) = _LENGTH.unpack_from(part, 0)
            return bytes(part[_LENGTH.size : _LENGTH.size + min(length, _ROOM)])
