"""Why a call ended without a result.

A component's trap carries no code. What can be told is told from counters and clocks, in a fixed order: the host's own
verdict, then our own deadline, then fuel, then memory; the rest is a trap. Never reads a message of the runtime to
decide.
"""

from pathlib import Path

from wasmtime import Store, WasmtimeError

_MAPS = Path("/proc/self/maps")
_RESERVED_BYTES = 1 << 32
"""What the engine reserves for one linear memory (32-bit wasm), its accessible part at the front."""


def remaining_fuel(store: Store) -> int:
    """Fuel left in a store. Meaningless after an epoch ended the call: then the counter was never written back."""
    try:
        return store.get_fuel()
    except WasmtimeError:
        return 0


def describe(error: WasmtimeError) -> str:
    """What the runtime says happened, in one short line for people; the backtrace above it names the guest's own."""
    said = str(error).strip().rpartition("\n")[2].strip()
    return "".join(character for character in said if character.isprintable())[:200]


def classify(*, is_late: bool, fuel_left: int, memory_limit: int) -> str:
    """Outcome of a call that trapped: timeout, fuel, memory or trap. Call it before the store is closed.

    Memory is an estimate: growth that the limiter refuses leaves no trace, so a trap with more than half of the
    allowed memory in use counts as one for want of memory. Rejected: a memory creator of our own, which would tell
    exactly, but puts the guard pages of every guest into our hands.
    """
    if is_late:
        return "timeout"
    if fuel_left == 0:
        return "fuel"
    return "memory" if linear_memory_bytes() * 2 > memory_limit else "trap"


def linear_memory_bytes() -> int:
    """Bytes of the largest linear memory that is mapped now; 0 when that can't be read."""
    try:
        lines = _MAPS.read_text().splitlines()
    except OSError:
        return 0
    largest = 0
    previous_end = accessible = 0
    for line in lines:
        span, rights, _ = line.split(maxsplit=2)
        start, end = (int(part, 16) for part in span.split("-"))
        if rights.startswith("rw"):
            accessible = end - start if start != previous_end or not accessible else accessible + end - start
        elif rights.startswith("---") and start == previous_end and accessible + end - start >= _RESERVED_BYTES:
            largest = max(largest, accessible)
            accessible = 0
        else:
            accessible = 0
        previous_end = end
    return largest
