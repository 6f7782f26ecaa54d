"""What a webhook's secret is: the configuration is checked and deliveries are signed by this one reading of it."""

import base64
import binascii
import re
from typing import Final

SECRET_PREFIX: Final = "whsec_"  # noqa: S105 - how a secret begins, not one
MIN_SECRET_BYTES: Final = 16
MAX_SECRET_CHARACTERS: Final = 512

_TEXT = re.compile(r"[!-~]([ -~]*[!-~])?")


class SecretUnfit(ValueError):
    """A text that nothing can be signed with. Says what it must be, never what it is."""


def key_of(secret: str) -> bytes:
    """The key that a secret stands for: what follows `whsec_` in base64, or the bytes of the text itself.

    Raises SecretUnfit.
    """
    if len(secret) > MAX_SECRET_CHARACTERS or not _TEXT.fullmatch(secret):
        raise SecretUnfit(f"must be one line of printable ASCII, {MAX_SECRET_CHARACTERS} characters at most")
    if len(secret) < MIN_SECRET_BYTES:
        raise SecretUnfit(f"must have {MIN_SECRET_BYTES} characters or more")
    if not secret.startswith(SECRET_PREFIX):
        return secret.encode()
    try:
        key = base64.b64decode(secret.removeprefix(SECRET_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        raise SecretUnfit(f"must have base64 after {SECRET_PREFIX}") from None
    if len(key) < MIN_SECRET_BYTES:
        raise SecretUnfit(f"must be {MIN_SECRET_BYTES} bytes or more")
    return key
