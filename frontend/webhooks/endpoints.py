"""The endpoints of a configuration, as far as sending needs them.

Guarantees that an endpoint with a secret file that can't be used refuses the start. SECURITY: an address, a header and
a secret may each be a credential, so that nothing of an endpoint shows but its name.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from frontend.telemetry.logs import log
from ipc.backends.webhooks import SecretUnfit, key_of
from ipc.process.exits import Exit
from ipc.process.private_files import PrivateFileError, read_private
from ipc.settings import WebhookSettings


@dataclass(frozen=True, slots=True, repr=False)
class WebhookTarget:
    """An endpoint to notify. `port` is None for the scheme's own; `target` is path and query."""

    name: str
    scheme: str
    host: str
    port: int | None
    target: str
    events: frozenset[str]
    headers: dict[str, str]
    timeout_seconds: float
    max_retries: int
    backoff_seconds: tuple[float, ...]
    secret: str | None
    secret_file: Path | None

    def __repr__(self) -> str:
        return f"<endpoint {self.name}>"

    def key(self) -> bytes:
        """The present signing key; a file is read each time. Raises KeyFileError, or SecretUnfit for a text."""
        if self.secret_file is None:
            return key_of(self.secret or "")
        return key_in(self.secret_file)

    def pause_after(self, attempt: int) -> float | None:
        """Seconds until the next attempt after this one failed, counted from 1; None after the last."""
        if attempt > self.max_retries:
            return None
        return self.backoff_seconds[min(attempt, len(self.backoff_seconds)) - 1]

    def pauses_left(self, attempt: int) -> float:
        """Seconds of all pauses from this attempt to the last, counted from 1."""
        return sum(self.pause_after(number) or 0.0 for number in range(attempt, self.max_retries + 1))


def key_in(file: Path) -> bytes:
    """The key of the secret in a private file. Raises KeyFileError."""
    try:
        return key_of(read_private(file).decode("ascii").strip())
    except UnicodeDecodeError:
        raise PrivateFileError(f"{file}: must be a text of printable ASCII.", Exit.CONFIG) from None
    except SecretUnfit as error:
        raise PrivateFileError(f"{file}: the secret {error}.", Exit.CONFIG) from None


def open_endpoints(rows: Iterable[WebhookSettings], *, is_successor: bool = False) -> tuple[WebhookTarget, ...]:
    """Those that are not disabled, each with a secret that can be used. Raises KeyFileError, SecretUnfit.

    `is_successor`: a file that can't be used is only said, as it would have been while the one before lived: its
    endpoint's attempts fail until the file is mended.
    """
    endpoints = tuple(_endpoint(row) for row in rows if not row.disable)
    for endpoint in endpoints:
        try:
            endpoint.key()
        except PrivateFileError as error:
            if not is_successor:
                raise
            log.error("a webhook's secret can't be used: its deliveries wait", endpoint=endpoint.name, cause=str(error))
    return endpoints


def _endpoint(row: WebhookSettings) -> WebhookTarget:
    parts = urlsplit(row.url)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return WebhookTarget(
        name=row.name, scheme=parts.scheme, host=parts.hostname or "", port=parts.port, target=target,
        events=frozenset(row.events), headers=dict(row.headers), timeout_seconds=row.timeout_seconds,
        max_retries=row.max_retries, backoff_seconds=row.retry_backoff_seconds, secret=row.secret,
        secret_file=None if row.secret_file is None else Path(row.secret_file),
    )  # fmt: skip
