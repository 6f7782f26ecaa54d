"""The secret of a webhook, and the part of its settings that each process gets.

The check of the configuration and the signing of deliveries read a secret alike. SECURITY: only the deliverer gets
addresses, headers and secrets of endpoints; all others get their names and kinds.
"""

import base64
import binascii
import re
from typing import Final

import msgspec

from ipc.settings import Settings, WebhookSettings

SECRET_PREFIX: Final = "whsec_"  # noqa: S105 - how a secret begins, not one
MIN_SECRET_BYTES: Final = 16
MAX_SECRET_CHARACTERS: Final = 512

_ANSWERED: Final = "the receiver answered "
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


def answered(status: int) -> str:
    """How a dead letter says which HTTP status gave it up; `status_of` reads it."""
    return f"{_ANSWERED}{status}"


def status_of(error: str) -> int | None:
    """The HTTP status that a dead letter's error names, None where the receiver did not answer."""
    status = error.removeprefix(_ANSWERED)
    return int(status) if status != error and status.isdecimal() else None


def without_addresses(settings: Settings) -> Settings:
    """These settings as processes have them that deliver nothing."""
    return msgspec.structs.replace(settings, webhooks=nameable(settings.webhooks))


def alone(settings: Settings) -> Settings:
    """The settings of a deliverer: without operators, identity, store and proxy, which may hold keys."""
    return Settings(
        settings.state_dir, settings.public_base_url, webhooks=settings.webhooks, egress=settings.egress,
        ledger=settings.ledger, lease_signing_key_path=settings.lease_signing_key_path,
        grant_signing_key_path=settings.grant_signing_key_path,
        receipt_signing_key_path=settings.receipt_signing_key_path, dev_mode=settings.dev_mode, walls=settings.walls,
        version=settings.version,
    )  # fmt: skip


def nameable(rows: tuple[WebhookSettings, ...]) -> tuple[WebhookSettings, ...]:
    """Endpoints without what may be a credential."""
    return tuple(
        msgspec.structs.replace(row, url="", headers={}, secret=None, secret_file=None) for row in rows
    )  # fmt: skip
