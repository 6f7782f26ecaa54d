"""Where a Redis is: `redis://`, `rediss://` and `unix://` addresses, as a structure. Holds no password."""

from typing import Final
from urllib.parse import unquote, urlsplit

import msgspec

DEFAULT_PORT: Final = 6379
_FORMS: Final = "redis://[USER@]HOST[:PORT][/NUMBER], rediss://… (TLS) or unix://[USER@]/PATH[?db=NUMBER]"


class RedisAddress(msgspec.Struct, frozen=True):
    """Either `path` (a Unix socket) or `host` and `port`."""

    host: str | None
    port: int
    path: str | None
    user: str | None
    database: int
    is_tls: bool

    @property
    def shown(self) -> str:
        """For sentences and logs."""
        return f"unix://{self.path}" if self.path else f"{self.host}:{self.port}"


def parse_redis_url(text: str) -> RedisAddress:
    """Raises ValueError with what is wrong and how to mend it; the sentence never repeats the text."""
    parts = urlsplit(text)
    if parts.scheme.startswith(("redis+sentinel", "sentinel")):
        raise ValueError("Sentinel is not supported. Name the address that leads to the master.")
    if parts.scheme not in ("redis", "rediss", "unix"):
        raise ValueError(f"must be {_FORMS}.")
    if parts.password is not None:
        raise ValueError("holds a password. Put it into the file that store.redis_password_file names.")
    user = unquote(parts.username) if parts.username else None
    if parts.fragment:
        raise ValueError(f"must be {_FORMS}.")
    if parts.scheme == "unix":
        if parts.hostname or not parts.path.startswith("/") or (parts.query and not parts.query.startswith("db=")):
            raise ValueError(f"must be {_FORMS}.")
        number = parts.query.removeprefix("db=")
        return RedisAddress(None, 0, unquote(parts.path), user, _number(number), False)
    if not parts.hostname or parts.query:
        raise ValueError(f"must be {_FORMS}.")
    try:
        port = parts.port or DEFAULT_PORT
    except ValueError:
        raise ValueError("has a port that is none.") from None
    return RedisAddress(parts.hostname, port, None, user, _number(parts.path.strip("/")), parts.scheme == "rediss")


def _number(text: str) -> int:
    if not text:
        return 0
    if not text.isascii() or not text.isdigit() or int(text) > 15:
        raise ValueError("has a database that is none: 0 to 15.")
    return int(text)
