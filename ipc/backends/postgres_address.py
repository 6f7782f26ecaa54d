"""Where a PostgreSQL is: `postgresql://` addresses, as a structure. Holds no password."""

import ipaddress
from typing import Final
from urllib.parse import parse_qsl, unquote, urlsplit

import msgspec

DEFAULT_PORT: Final = 5432
_FORMS: Final = "postgresql://[USER@]HOST[:PORT]/DATABASE or postgresql://[USER@]/DATABASE?host=/FOLDER[&port=PORT]"


class PostgresAddress(msgspec.Struct, frozen=True):
    """Either `folder` (where its Unix socket lies) or `host`; `port` names the socket, too."""

    host: str | None
    port: int
    folder: str | None
    user: str | None
    database: str

    @property
    def ports(self) -> tuple[int, ...]:
        """The ports that are connected to by TCP."""
        return () if self.host is None else (self.port,)

    @property
    def socket(self) -> str | None:
        """Path of its Unix socket."""
        return None if self.folder is None else f"{self.folder}/.s.PGSQL.{self.port}"

    @property
    def is_elsewhere(self) -> bool:
        """True for another host than this."""
        if self.host is None or self.host == "localhost":
            return False
        try:
            return not ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return True


def parse_postgres_url(text: str) -> PostgresAddress:
    """Raises ValueError with what is wrong and how to mend it; the sentence never repeats the text."""
    try:
        parts = urlsplit(text)
        port, more = parts.port, parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
    except ValueError:
        raise ValueError(f"must be {_FORMS}.") from None
    if parts.scheme not in ("postgresql", "postgres"):
        raise ValueError(f"must be {_FORMS}.")
    if parts.password is not None or any(name == "password" for name, _ in more):
        raise ValueError("holds a password. Put it into the file that ledger.password_file names.")
    given, database = dict(more), unquote(parts.path.removeprefix("/"))
    is_local = not parts.hostname
    known = {"host", "port"} if is_local else set()
    if parts.fragment or not database or "/" in database or not set(given) <= known or len(given) != len(more):
        raise ValueError(f"must be {_FORMS}.")
    user = unquote(parts.username) if parts.username else None
    if any(c < " " for c in f"{database}{user or ''}"):
        raise ValueError(f"must be {_FORMS}.")
    if not is_local:
        return PostgresAddress(parts.hostname, port or DEFAULT_PORT, None, user, database)
    folder = given.get("host", "")
    if not folder.startswith("/") or "," in folder or port is not None:
        raise ValueError(f"must be {_FORMS}.")
    return PostgresAddress(None, _port(given.get("port", str(DEFAULT_PORT))), folder.rstrip("/"), user, database)


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 6 and 0 < int(text) < 65_536):
        raise ValueError("has an invalid port.")
    return int(text)
