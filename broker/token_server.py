"""One token by client credentials (RFC 6749 §4.4): the request, and the strict reading of its answer.

The client is authenticated by Basic (§2.3.1). Guarantees that everything but a bearer token of printable characters is
a named error, which repeats nothing of the answer but an error code of the RFC. SECURITY: no value is in an exception.
"""

import base64
import re
from typing import Final
from urllib.parse import quote_plus, urlencode

import msgspec
import trio

from broker.connecting import NotReached, ServerAnswer, Servers
from ipc.configuration.secret_ways import AsToken
from ipc.keys.secret_values import is_searchable

DEFAULT_SECONDS: Final = 300
"""The life of a token whose answer does not say it."""
MAX_SECONDS: Final = 24 * 3600
MAX_TOKEN_CHARACTERS: Final = 8000
"""With `Bearer ` it fits a header of 8192."""
_TOKEN = re.compile(r"[!-~]+")
_ERRORS: Final = frozenset({
    "invalid_request", "invalid_client", "invalid_grant", "unauthorized_client", "unsupported_grant_type",
    "invalid_scope",
})  # fmt: skip
"""RFC 6749 §5.2."""


class NoToken(Exception):
    """There is no token, for this reason: a sentence."""


class FetchedToken:
    """A token and the seconds that it lives from now on. Shows neither in a repr."""

    __slots__ = ("seconds", "value")

    def __init__(self, value: str, seconds: int) -> None:
        self.value = value
        self.seconds = seconds


class _TokenAnswer(msgspec.Struct):
    access_token: str
    token_type: str
    expires_in: int | None = None

    def __repr__(self) -> str:
        return "<token>"


class _ErrorAnswer(msgspec.Struct):
    error: str


async def fetch_token(servers: Servers, way: AsToken, client_secret: str, seconds: float) -> FetchedToken:
    """Ask the token server once. Raises NoToken."""
    form = {"grant_type": "client_credentials"}
    if way.scopes:
        form["scope"] = " ".join(way.scopes)
    if way.audience is not None:
        form["audience"] = way.audience
    pair = f"{quote_plus(way.client_id)}:{quote_plus(client_secret)}"
    headers = {
        "authorization": "Basic " + base64.b64encode(pair.encode()).decode(), "accept": "application/json",
        "content-type": "application/x-www-form-urlencoded", "user-agent": "action-gateway",
    }  # fmt: skip
    answer = None
    with trio.move_on_after(seconds):
        try:
            answer = await servers.post(way.token_url, headers, urlencode(form).encode())
        except NotReached as error:
            raise NoToken(f"the token server: {error}") from None
    if answer is None:
        raise NoToken(f"the token server gave no whole answer within {seconds:g} s")
    return read_token(answer)


def read_token(answer: ServerAnswer) -> FetchedToken:
    """The token of an answer. Raises NoToken."""
    if answer.status != 200:
        raise NoToken(f"the token server answered {answer.status}{_error_of(answer)}")
    if answer.content_type.partition(";")[0].strip().lower() != "application/json":
        raise NoToken("the token server's answer is not of type application/json")
    read = _read(answer.body)
    if read is None:
        raise NoToken("the token server's answer is not a token by RFC 6749")
    if read.token_type.lower() != "bearer":
        raise NoToken("the token server gave a token that is not of type Bearer")
    if len(read.access_token) > MAX_TOKEN_CHARACTERS or not _TOKEN.fullmatch(read.access_token):
        raise NoToken(f"the token is not printable ASCII of at most {MAX_TOKEN_CHARACTERS} characters")
    if not is_searchable(read.access_token):
        raise NoToken("the token is too short to be found in an answer")
    seconds = DEFAULT_SECONDS if read.expires_in is None else read.expires_in
    if seconds <= 0:
        raise NoToken("the token server gave a token whose time is over")
    return FetchedToken(read.access_token, min(seconds, MAX_SECONDS))


def _read(body: bytes) -> _TokenAnswer | None:
    try:
        return msgspec.json.decode(body, type=_TokenAnswer)
    except (ValueError, RecursionError):
        return None


def _error_of(answer: ServerAnswer) -> str:
    try:
        told = msgspec.json.decode(answer.body, type=_ErrorAnswer).error
    except (ValueError, RecursionError):
        return ""
    return f" {told}" if told in _ERRORS else ""
