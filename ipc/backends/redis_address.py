"""Where a Redis is, as a structure: `redis://`, `rediss://` and `unix://` addresses, and those of sentinels.

Holds no password."""

import re
from typing import Final
from urllib.parse import SplitResult, unquote, urlsplit

import msgspec

DEFAULT_PORT: Final = 6379
SENTINEL_PORT: Final = 26379
MAX_PLACES: Final = 9
"""Sentinels, and ports of the servers that they watch."""
_FORMS: Final = (
    "redis://[USER@]HOST[:PORT][/NUMBER], rediss://… (TLS), unix://[USER@]/PATH[?db=NUMBER] or"
    " redis+sentinel://[USER@]HOST[:PORT][,HOST[:PORT]…]/MASTER[/NUMBER][?ports=PORT[,PORT…]] (TLS: rediss+sentinel)"
)

_SENTINELS: Final = re.compile(r"(\s*rediss?\+sentinel://(?:[^/?#]*@)?)([^/?#]*)", re.IGNORECASE)
"""The text before the sentinels' addresses, and these addresses."""


class RedisAddress(msgspec.Struct, frozen=True):
    """Either `path` (a Unix socket) or `host` and `port`: those of the first sentinel, where sentinels say where the
    Redis of the name `master` is, at one of `master_ports`."""

    host: str | None
    port: int
    path: str | None
    user: str | None
    database: int
    is_tls: bool
    sentinels: tuple[tuple[str, int], ...] = ()
    master: str = ""
    master_ports: tuple[int, ...] = ()

    @property
    def ports(self) -> tuple[int, ...]:
        """The ports that are connected to by TCP."""
        if self.host is None:
            return ()
        return (self.port, *(port for _, port in self.sentinels), *self.master_ports)

    @property
    def shown(self) -> str:
        """For sentences and logs."""
        return f"unix://{self.path}" if self.path else f"{self.host}:{self.port}"


def parse_redis_url(text: str) -> RedisAddress:
    """Raises ValueError with what is wrong and how to mend it; the sentence never repeats the text."""
    text, others = _with_first_place(text)
    parts = urlsplit(text)
    if parts.scheme not in ("redis", "rediss", "unix", "redis+sentinel", "rediss+sentinel"):
        raise ValueError(f"must be {_FORMS}.")
    if ":" in parts.netloc.rpartition("@")[0]:
        raise ValueError("holds a password. Put it into the file that store.redis_password_file names.")
    user = unquote(parts.netloc.rpartition("@")[0]) or None
    if parts.fragment:
        raise ValueError(f"must be {_FORMS}.")
    if parts.scheme == "unix":
        return _by_path(parts, user)
    if parts.scheme.endswith("+sentinel"):
        return _by_sentinels(parts, user, others)
    if not parts.hostname or parts.query:
        raise ValueError(f"must be {_FORMS}.")
    host, port = _place(parts.netloc.rpartition("@")[2], DEFAULT_PORT)
    return RedisAddress(host, port, None, user, _number(parts.path.strip("/")), parts.scheme == "rediss")


def _by_path(parts: SplitResult, user: str | None) -> RedisAddress:
    if parts.hostname or not parts.path.startswith("/") or (parts.query and not parts.query.startswith("db=")):
        raise ValueError(f"must be {_FORMS}.")
    number = parts.query.removeprefix("db=")
    return RedisAddress(None, 0, unquote(parts.path), user, _number(number), False)


def _with_first_place(text: str) -> tuple[str, list[str]]:
    """The address with the first of its sentinels alone, and the others: newer versions of Python refuse a host in
    brackets behind a comma."""
    sentinels = _SENTINELS.match(text)
    if sentinels is None:
        return text, []
    first, *others = sentinels[2].split(",")
    return sentinels[1] + first + text[sentinels.end() :], others


def _by_sentinels(parts: SplitResult, user: str | None, others: list[str]) -> RedisAddress:
    master, _, number = parts.path.strip("/").partition("/")
    if not master or (parts.query and not parts.query.startswith("ports=")):
        raise ValueError(f"must be {_FORMS}.")
    places = (parts.netloc.rpartition("@")[2], *others)
    sentinels = tuple(_place(one, SENTINEL_PORT) for one in places)
    named = parts.query.removeprefix("ports=") or str(DEFAULT_PORT)
    ports = tuple(_port(one) for one in named.split(","))
    if max(len(sentinels), len(ports)) > MAX_PLACES:
        raise ValueError(f"names more than {MAX_PLACES} sentinels or ports.")
    return RedisAddress(
        *sentinels[0], None, user, _number(number), parts.scheme == "rediss+sentinel", sentinels, unquote(master), ports
    )


def _place(text: str, default: int) -> tuple[str, int]:
    parts = urlsplit(f"//{text}")
    if not parts.hostname:
        raise ValueError(f"must be {_FORMS}.")
    try:
        return parts.hostname, parts.port or default
    except ValueError:
        raise ValueError("has an invalid port.") from None


def _port(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 0 < int(text) < 65536:
        raise ValueError("has an invalid port.")
    return int(text)


def _number(text: str) -> int:
    if not text:
        return 0
    if not text.isascii() or not text.isdigit() or int(text) > 15:
        raise ValueError("has an invalid database number: 0 to 15.")
    return int(text)
