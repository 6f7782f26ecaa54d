"""`[[webhooks]]` in the configuration: kinds of its values, and the settings of one endpoint.

SECURITY: an endpoint's address, headers and secret may each be a credential. None of them is ever shown, in a problem
or elsewhere; messages name the endpoint instead.
"""

import re
from typing import Any
from urllib.parse import urlsplit

from ipc.backends.webhooks import MAX_SECRET_CHARACTERS, MIN_SECRET_BYTES, SECRET_PREFIX, SecretUnfit, key_of
from ipc.settings import WebhookSettings
from supervisor.settings import value_kinds
from supervisor.settings.kind import PathContext, Wrong, kind, place

MAX_ENDPOINTS = 32
MAX_URL_CHARACTERS, MAX_VALUE_CHARACTERS = 2048, 4096

_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_URL = re.compile(r"https?://[!#-;=?-Z\[\]_a-z~|]+")
_TEXT = re.compile(r"[!-~]([ -~]*[!-~])?")
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}")
_OURS = (
    "connection", "content-encoding", "content-length", "content-type", "expect", "host", "keep-alive", "te", "trailer",
    "transfer-encoding", "upgrade", "user-agent", "webhook-id", "webhook-signature", "webhook-timestamp",
    "x-gateway-signature",
)  # fmt: skip
"""Headers that a delivery has anyway, or that say how it travels."""


@kind(type="string", pattern="^https?://[^ @#]+$", maxLength=MAX_URL_CHARACTERS)
def url(value: object, context: PathContext) -> str:
    """An absolute http or https URL whose host is a name in lower case; where it leads shows when it is resolved."""
    mend = 'Use a form like "https://hooks.example/gateway".'
    if not isinstance(value, str) or len(value) > MAX_URL_CHARACTERS or not _URL.fullmatch(value):
        raise Wrong("must be an http or https URL in ASCII", mend, is_secret=True)
    try:
        parts = urlsplit(value)
        port = parts.port
    except ValueError:
        raise Wrong("is not a URL", mend, is_secret=True) from None
    host = parts.netloc.rpartition(":")[0] if port is not None else parts.netloc
    if "@" in parts.netloc or "#" in value:
        raise Wrong("must hold neither user nor fragment", mend, is_secret=True)
    if port == 0 or _NUMBER.fullmatch(host.rpartition(".")[2]) or not _is_host(host, context):
        raise Wrong("must name its host by a name in lower case", mend, is_secret=True)
    return value


def _is_host(text: str, context: PathContext) -> bool:
    try:
        value_kinds.host_name(text, context)
    except Wrong:
        return False
    return True


@kind(type="string", minLength=MIN_SECRET_BYTES, maxLength=MAX_SECRET_CHARACTERS)
def secret(value: object, _: PathContext) -> str:
    """The secret that signs deliveries: `whsec_` and base64, or any printable text."""
    mend = "Make one: echo whsec_$(head -c 32 /dev/urandom | base64)."
    if not isinstance(value, str):
        raise Wrong("must be a text in quotes", mend, is_secret=True)
    try:
        key_of(value)
    except SecretUnfit as error:
        raise Wrong(str(error), mend, is_secret=True) from None
    return value


@place(**value_kinds.path.form)
def secret_file(value: object, context: PathContext) -> str:
    """The path of a private file that holds it. Paths are shown where they will not do, so a secret is not taken for
    one."""
    if isinstance(value, str) and value.startswith(SECRET_PREFIX):
        raise Wrong("must be the path of a file that holds the secret", "Write secret instead.", is_secret=True)
    return value_kinds.path(value, context)


@kind(type="string", pattern=f"^{_TOKEN.pattern}$")
def header_name(value: object, _: PathContext) -> str:
    """The name of a further header; returned in lower case."""
    if not isinstance(value, str) or not _TOKEN.fullmatch(value):
        raise Wrong("is no name of a header", 'Write {name = "value"}.', is_secret=True)
    if value.lower() in _OURS:
        raise Wrong("is a header of the gateway's own", "Remove it.")
    return value.lower()


@kind(type="string", minLength=1, maxLength=MAX_VALUE_CHARACTERS)
def header_value(value: object, _: PathContext) -> str:
    """Its value: printable ASCII."""
    if not isinstance(value, str) or len(value) > MAX_VALUE_CHARACTERS or not _TEXT.fullmatch(value):
        raise Wrong("must be a text of printable ASCII", is_secret=True)
    return value


def webhook_settings(row: dict[str, Any]) -> WebhookSettings:
    """One checked table -> the settings of an endpoint; for an invalid table, the readable part."""
    return WebhookSettings(**{"name": "", "url": "https://"} | row)
