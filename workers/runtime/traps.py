"""Why a call ended without a result.

A component's trap carries no code. The kind is found from counters and clocks, in a fixed order: the host's own
verdict, then our own deadline, then fuel, then memory; the rest is a trap. Never reads a message of the runtime to
decide.
"""

import mmap

from wasmtime import Store, WasmtimeError

from ipc.messages.calling import ProviderFailure
from ipc.walls.limits import data_in_use

_PROBED_BYTES = 1 << 31
"""More than any worker may have."""
_STEP_BYTES = 1 << 16
"""A page of wasm."""
_MAP_NORESERVE = 0x4000  # linux/mman.h
_PRIVATE = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_NORESERVE


def remaining_fuel(store: Store) -> int:
    """Fuel left in a store. Meaningless after an epoch ended the call: then the counter was never written back."""
    try:
        return store.get_fuel()
    except WasmtimeError:
        return 0


def describe(error: WasmtimeError) -> str:
    """The message of the runtime, in one short line for people; the backtrace above it names the guest's own."""
    said = str(error).strip().rpartition("\n")[2].strip()
    return "".join(character for character in said if character.isprintable())[:200]


def classify(*, is_late: bool, fuel_left: int, memory: int, memory_limit: int) -> str:
    """Outcome of a call that trapped and had so much memory: timeout, fuel, memory or trap.

    Memory is an estimate: growth that the limiter refuses leaves no trace, so a trap with more than half of the
    allowed memory in use counts as one for want of memory. Rejected: a memory creator of our own, which would tell
    exactly, but puts the guard pages of every guest into our hands.
    """
    if is_late:
        return "timeout"
    if fuel_left == 0:
        return "fuel"
    return "memory" if memory * 2 > memory_limit else "trap"


def is_refused_memory(failure: ProviderFailure) -> bool:
    """True for the error with which a guest reports that it was refused memory, instead of trapping.

    The runtime tells nothing of a growth that it refuses, so the guest is believed: the outcome says which limit ended
    the call, and permits nothing.
    """
    return (failure.kind, failure.message) == ("too-large", "memory limit")


def memory_of(store: Store) -> int:
    """Bytes of the memory that a store holds. Closes it: it is what this process gives back then."""
    before = _data_held()
    store.close()
    return before - _data_held()


def _data_held() -> int:
    """Bytes of private memory that this process holds, but for a constant.

    Behind its walls a worker can't read what the kernel says of it; there it is found from what RLIMIT_DATA leaves: the
    largest mapping that the kernel would make, none of which is ever touched.
    """
    try:
        return data_in_use()
    except OSError:
        pass
    least, most = 0, _PROBED_BYTES // _STEP_BYTES
    while least < most:
        middle = (least + most + 1) // 2
        try:
            mmap.mmap(-1, middle * _STEP_BYTES, flags=_PRIVATE).close()
            least = middle
        except OSError:
            most = middle - 1
    return -least * _STEP_BYTES
