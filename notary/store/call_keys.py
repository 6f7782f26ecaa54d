"""Calls that were made under an `Idempotency-Key`, as every store keeps them: which call has a key, and how it ended.

A key is known by a digest of principal, action and key. Its record is written in the unit that opens or holds the call;
a record of the end is written in the unit that ends it.
"""

from typing import Final, Protocol

import msgspec

from ipc.operations.calls import Closed
from ipc.texts.canonical import canonical_bytes, sha256_hex
from notary.store.keeping import KeptBounds

MAX_KEYS: Final = 1_000_000
"""Keys of one principal that are kept at the same time. A new one beyond that is refused: without its record a repeat
would run again."""
OUTPUT_BYTES_OF_PRINCIPAL: Final = 16 * 1024 * 1024
OUTPUT_BYTES: Final = 64 * 1024 * 1024
KEPT_SECONDS: Final = 60.0
"""Records that are over are kept this long, for a clock that a time service has set back a little."""


class KeyedCall(msgspec.Struct, frozen=True):
    """The call that has a key. Times are Unix seconds."""

    call_id: str
    """The id of its intent, or of its approval if it was held."""
    trace_id: str
    request_hash: str
    until: float
    """A call that was opened can't be running any more at this time."""
    expires_at: float


class KeyedEnd(msgspec.Struct, frozen=True, omit_defaults=True):
    """The end of a call that has a key."""

    closed: Closed | None = None
    """With its receipt."""
    has_happened: bool = False
    """True without a receipt: an operator says so. Neither: nothing was executed."""
    has_output: bool = False
    """Its output was kept."""
    trace_id: str = ""


class KeyedCalls(Protocol):
    """The part of a Store that has them. Every method may raise DatabaseGone or StoreGone."""

    def of_key(self, name: str) -> KeyedCall | None:
        """The call that has this key. It may have expired."""
        ...

    def give_key(self, name: str, principal: str, call: KeyedCall) -> None:
        """This call has the key from now on."""
        ...

    def keys_of(self, principal: str, now: float) -> int:
        """How many keys of a principal are kept, at least."""
        ...

    def end_of(self, call_id: str) -> KeyedEnd | None:
        """How a call has ended; None if that is not known."""
        ...

    def end(self, call_id: str, ended: KeyedEnd, expires_at: float) -> None:
        """Keep the end of a call until then."""
        ...

    def keep_output(self, call_id: str, principal: str, output: str, now: float) -> None:
        """Keep the output of a call, as long as the bounds allow."""
        ...

    def output_of(self, call_id: str) -> str | None:
        """The output, if it is still kept."""
        ...

    def erase_output(self, call_id: str) -> None:
        """Erase the output of a call, if it is kept."""
        ...

    def trim(self, since: float) -> int:
        """Erase outputs that are older than that or beyond the bounds, the oldest first: at most TRIMMED_AT_ONCE. How
        many it were."""
        ...

    def sweep(self, now: float) -> bool:
        """Forget a bounded number of keys and ends that are over. True when there may be more."""
        ...


def name_of(principal: str, action_id: str, key: str) -> str:
    """The name under which a key is kept."""
    return sha256_hex(canonical_bytes([principal, action_id, key])).removeprefix("sha256:")


def bounds_since(since: float) -> KeptBounds:
    """The bounds of outputs."""
    return KeptBounds(since, OUTPUT_BYTES_OF_PRINCIPAL, OUTPUT_BYTES)


encode_call = msgspec.json.Encoder().encode
decode_call = msgspec.json.Decoder(KeyedCall).decode
decode_end = msgspec.json.Decoder(KeyedEnd).decode
