"""Calls that were made under an `Idempotency-Key`, in Redis, within one unit: see notary/store/call_keys.py.

A unit that has read a key depends on it: of two hosts that open calls of the same key, one finds the call of the other.
"""

from collections.abc import Callable
from typing import Final, TypeVar

import msgspec

from notary.backends.redis import scripts
from notary.backends.redis.changes import Changes, milliseconds
from notary.backends.redis.keys import RedisKeys
from notary.store.call_keys import (
    KEPT_SECONDS,
    KeyedCall,
    KeyedEnd,
    bounds_since,
    decode_call,
    decode_end,
    encode_call,
)
from notary.store.contract import StoreGone
from notary.store.keeping import TRIMMED_AT_ONCE

LONGEST_KEY_SECONDS: Final = 2 * 24 * 3600.0
"""So long lives the list of a principal's keys once the last one was added: no key lives longer."""
T = TypeVar("T")


class RedisKeyedCalls:
    """See KeyedCalls. It sees its own changes."""

    def __init__(self, changes: Changes, keys: RedisKeys, clock: Callable[[], float]) -> None:
        self._changes = changes
        self._keys = keys
        self._clock = clock
        self._calls: dict[str, KeyedCall | None] = {}
        self._ends: dict[str, KeyedEnd | None] = {}
        self._outputs: dict[str, str | None] = {}
        """Those that this unit keeps, or erases."""
        self._added: dict[str, int] = {}
        """Principal -> keys that this unit adds."""

    def of_key(self, name: str) -> KeyedCall | None:
        """See KeyedCalls."""
        if name not in self._calls:
            self._calls[name] = _read(self._changes.read("GET", self._keys.call_key(name)), decode_call)
        return self._calls[name]

    def give_key(self, name: str, principal: str, call: KeyedCall) -> None:
        """See KeyedCalls."""
        now = self._clock()
        lives = milliseconds(call.expires_at - now + KEPT_SECONDS)
        self._changes.step("put", self._keys.call_key(name), encode_call(call).decode(), lives)
        whole = milliseconds(LONGEST_KEY_SECONDS)
        self._changes.step("session", self._keys.call_keys_of(principal), name, repr(call.expires_at), whole, repr(now))
        if self._calls.get(name) is None:
            self._added[principal] = self._added.get(principal, 0) + 1
        self._calls[name] = call

    def keys_of(self, principal: str, now: float) -> int:
        """See KeyedCalls. Counted now: another host may add one at the same time."""
        counted = self._changes.look("ZCOUNT", self._keys.call_keys_of(principal), f"({now!r}", "+inf")
        return int(counted) + self._added.get(principal, 0)

    def end_of(self, call_id: str) -> KeyedEnd | None:
        """See KeyedCalls."""
        if call_id not in self._ends:
            self._ends[call_id] = _read(self._changes.read("GET", self._keys.call_end(call_id)), decode_end)
        return self._ends[call_id]

    def end(self, call_id: str, ended: KeyedEnd, expires_at: float) -> None:
        """See KeyedCalls."""
        lives = milliseconds(expires_at - self._clock() + KEPT_SECONDS)
        self._changes.step("put", self._keys.call_end(call_id), encode_call(ended).decode(), lives)
        self._ends[call_id] = ended

    def keep_output(self, call_id: str, principal: str, output: str, now: float) -> None:
        """See KeyedCalls."""
        size = str(len(output.encode()))
        self._changes.step("keep", self._keys.outputs, call_id, principal, repr(now), size, output)
        self._outputs[call_id] = output

    def output_of(self, call_id: str) -> str | None:
        """See KeyedCalls."""
        if call_id in self._outputs:
            return self._outputs[call_id]
        kept = self._changes.look("GET", f"{self._keys.outputs}record:{call_id}")
        return None if kept is None else str(kept)

    def erase_output(self, call_id: str) -> None:
        """See KeyedCalls."""
        self._changes.step("unkeep", self._keys.outputs, call_id)
        self._outputs[call_id] = None

    def trim(self, since: float) -> int:
        """See KeyedCalls. At once, whether or not the unit is committed."""
        client, bounds = self._changes.client, bounds_since(since)
        if not client.is_taken:
            return 0
        asked = (repr(bounds.since), str(bounds.bytes_of_principal), str(bounds.bytes_of_all), str(TRIMMED_AT_ONCE))
        return int(client.run(scripts.TRIM, [self._keys.outputs], *asked))

    def sweep(self, now: float) -> bool:  # noqa: ARG002 - the server's clock forgets them
        """See KeyedCalls."""
        return False


def _read(text: str | None, decode: Callable[[str], T]) -> T | None:
    try:
        return None if text is None else decode(text)
    except (msgspec.MsgspecError, RecursionError):
        raise StoreGone("Redis: the call of a key can't be read") from None
