"""Decisions kept in memory: what one loaded policy has decided, by the fields of the question that it reads.

Guarantees that an answer is only ever given to a question that has, in every field that the policy reads, exactly the
values of the question that it was the answer to. Which fields those are is said by the policy process, from the
compiled program; a field that is unknown here makes the policy one that is asked each time. A memo belongs to one
load of one policy and is thrown away with it; it is bounded in entries and bytes, and forgets what was asked longest
ago. Never holds anything but whole decisions.
"""

import operator
import sys
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any

import msgspec

from frontend.policy.engine import MemoStatus
from frontend.policy.question import ATTRIBUTES, Decision, Question
from ipc.messages.deciding import PolicyCompiled
from ipc.texts.foreign_texts import clean_reason

MAX_ENTRIES = 4096
MAX_BYTES = 4 * 1024 * 1024
"""The memory limit for keys and decisions together."""
MAX_ENTRY_BYTES = 64 * 1024
"""A question that is larger is asked each time: one agent's long lists must not push all others' out."""

NOT_LOADED = "no policy process holds a policy"

_OVERHEAD = 512
"""Bytes of one entry beside its texts: the decision, the tuples, the table's row."""


class Memo:
    """The decisions of one load. `reads` are the names of fields of the input, all of them in ATTRIBUTES."""

    __slots__ = ("_bytes", "_entries", "_max_bytes", "_max_entries", "key_of", "reads_budget")

    def __init__(self, reads: tuple[str, ...], *, max_entries: int = MAX_ENTRIES, max_bytes: int = MAX_BYTES) -> None:
        self.key_of: Callable[[Question], Hashable] = _getter(tuple(ATTRIBUTES[name] for name in reads))
        """The values of those fields; two questions with equal ones have one decision."""
        self._entries: OrderedDict[Hashable, tuple[Decision, int]] = OrderedDict()
        self._bytes = 0
        self._max_entries, self._max_bytes = max_entries, max_bytes
        self.reads_budget = "budgets_before" in reads
        """The policy may decide by what is left of a budget."""

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: Hashable) -> Decision | None:
        """The decision over a question with this key, if it is remembered."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        self._entries.move_to_end(key)
        return entry[0]

    def put(self, key: Hashable, decision: Decision) -> None:
        """Remember a whole decision. The least recently asked decisions make room."""
        size = _OVERHEAD + _size(key) + sum(_size(value) for value in msgspec.structs.astuple(decision))
        if size > MAX_ENTRY_BYTES or key in self._entries:
            return
        self._entries[key] = (decision, size)
        self._bytes += size
        while len(self._entries) > self._max_entries or self._bytes > self._max_bytes:
            _, (_, gone) = self._entries.popitem(last=False)
            self._bytes -= gone


def memo_for(compiled: PolicyCompiled) -> Memo | str:
    """An empty memo for a policy that was compiled, or why its decisions can't be remembered."""
    if compiled.reads is None:
        return clean_reason(compiled.reads_unknown or "") or "the policy process does not say what the policy reads"
    unknown = [name for name in compiled.reads if name not in ATTRIBUTES]
    if unknown:
        return clean_reason(f"the policy reads input.{unknown[0]}, which no question has")
    return Memo(compiled.reads)


def _getter(names: tuple[str, ...]) -> Callable[[Question], Hashable]:
    if not names:
        return _nothing
    getter: Callable[[Any], Hashable] = operator.attrgetter(*names)
    return getter


def _nothing(_question: Question) -> Hashable:
    return ()


def _size(value: object) -> int:
    """Bytes of texts, and of tuples with all that they hold."""
    return sys.getsizeof(value) + (sum(map(_size, value)) if isinstance(value, tuple) else 0)


def memo_status_of(memo: Memo | str) -> MemoStatus:
    """Whether decisions are remembered, and how many are; if not, why."""
    return MemoStatus(False, memo, 0) if isinstance(memo, str) else MemoStatus(True, None, len(memo))
