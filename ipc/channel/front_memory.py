"""The memory that all fronts of a gateway share: its layout and its size.

One anonymous file (memfd) of the supervisor, handed to every front with its first message. It holds the limits of the
whole gateway (rates, places, draining), and the counters of each front, so that they outlive the front. Each
part has one writer, or is written under its lock; the supervisor only clears what an ended front held.
Numbers are 8 bytes, as the machine has them: they never leave it.
"""

import fcntl
import os

import msgspec

from ipc.settings import Settings

STARTED, IS_DRAINING, HAS_TOLD_START, POLICY_CHANGES = 0, 8, 16, 24
"""Fields of the gateway: its start (monotonic seconds), flags, and how often a front has changed the policy's data."""
TOLD = 1 << 32
"""In HAS_TOLD_START; less than that is the number of the front that is telling it."""
POLICY_DIGEST, DIGEST_BYTES = 64, 64
"""The digest of the policy after the last such change, in hexadecimal."""
MANIFESTS_DIGEST = 128
"""The digest of all manifests in force, as long as that of the policy."""
BUCKETS, BUCKET_BYTES = 1024, 768
"""One for each class of PER_SECOND in frontend/limits/rates.py: when it was counted, and who has spent how much."""

SESSIONS = 8192
SESSION_SETS, SESSION_WAYS = 2048, 8
"""A session lies in the set that its hash names, in any of its ways."""
KEY_BYTES, SESSION_BYTES = 16, 40
SET_BYTES = SESSION_WAYS * (KEY_BYTES + SESSION_BYTES)

AREAS = SESSIONS + SESSION_SETS * SET_BYTES
IS_SERVING, IN_FLIGHT, OWNERS = 0, 8, 64
"""At the beginning of a front's area: what ends with it."""
OWNER_ROWS, OWNER_BYTES = 3, 4
MOST_COUNTERS = 1 << 18
"""The most counters of a row, which the supervisor clears at once when a front ends."""
NOW_BYTES = 1024 * 1024
NUMBERS_BYTES = 8 * 1024 * 1024
NAMES_BYTES = 16 * 1024 * 1024
"""Bounds for what is counted; a page that is not written takes no memory."""

_PAGE = 4096


def _whole_pages(size: int) -> int:
    return -(-size // _PAGE) * _PAGE


class Area(msgspec.Struct, frozen=True):
    """Where the parts of one front's area begin."""

    start: int
    owners: int
    now: int
    numbers: int
    names: int


class Layout(msgspec.Struct, frozen=True):
    """The memory of so many fronts. `width`: counters of one row of owners of places, a power of two."""

    fronts: int
    width: int

    @staticmethod
    def of(settings: Settings) -> "Layout":
        """As these settings need it. Supervisor and fronts come to the same."""
        # Two owners a place, spread so thinly that two of them seldom meet in one row, let alone in all.
        wanted = 1 << (32 * settings.limits.most_in_flight - 1).bit_length()
        return Layout(settings.front_processes, min(wanted, MOST_COUNTERS))

    @property
    def size(self) -> int:
        """Bytes in all."""
        return AREAS + self.fronts * self._area_bytes

    @property
    def held_bytes(self) -> int:
        """Bytes from the start of an area that are cleared when its front ends."""
        return _whole_pages(OWNERS + OWNER_ROWS * self.width * OWNER_BYTES)

    @property
    def _area_bytes(self) -> int:
        return self.held_bytes + NOW_BYTES + NUMBERS_BYTES + NAMES_BYTES

    def area(self, number: int) -> Area:
        """The area of the front with this number, which counts from 1."""
        start = AREAS + (number - 1) * self._area_bytes
        now = start + self.held_bytes
        return Area(start, start + OWNERS, now, now + NOW_BYTES, now + NOW_BYTES + NUMBERS_BYTES)


def make_memory(layout: Layout) -> int:
    """A descriptor of fresh memory, all zeros, that no process can make smaller or larger."""
    memory = os.memfd_create("gateway-fronts", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(memory, layout.size)
    # SECURITY: a process that could shrink it would end every other one that looks into it.
    fcntl.fcntl(memory, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
    return memory
