"""Signed texts of standing approvals, each read and checked once: many calls run by the same one.

Whether a key has signed a text never changes. The owner of the key, and whether the text holds here and now, may
change: callers ask each time.
"""

from functools import lru_cache
from typing import Final

from ipc.keys.signed_approvals import SignatureRefused
from ipc.keys.standing_approvals import SignedStanding, read_standing
from ipc.process.logs import log
from notary.signing.operators import check_signature

MAX_KNOWN: Final = 1024
"""Texts, and refusals that the log has told: more than are ever in force."""


def checked_standing(text: str) -> SignedStanding:
    """A text that the key in its header, anybody's, has signed. Raises SignatureRefused."""
    signed, refusal = _checked(text)
    if signed is None:
        raise SignatureRefused(refusal)
    return signed


@lru_cache(maxsize=MAX_KNOWN)
def tell_once(standing_id: str, cause: str) -> None:
    """Log that a standing approval in force serves no call: once, and not for each call that it might cover."""
    log.warning("a standing approval serves no call", standing_id=standing_id, cause=cause)


@lru_cache(maxsize=MAX_KNOWN)
def _checked(text: str) -> tuple[SignedStanding | None, str]:
    try:
        signed = read_standing(text)
        check_signature(signed.text)
    except SignatureRefused as refused:
        return None, str(refused)
    return signed, ""
