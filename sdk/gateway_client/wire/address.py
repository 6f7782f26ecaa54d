"""Where a gateway is: a Unix socket or a TCP address, and the URL that proofs are made for.

The two differ: a proof names `public_base_url`, which is the gateway's configuration, wherever its sockets are.
"""

from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import SplitResult, unquote, urlsplit

_SCHEMES = frozenset({"http", "https"})


@dataclass(frozen=True, slots=True)
class Address:
    """Make one with `Address.parse`. `socket` is the path of a Unix socket, None for TCP.

    `origin` is scheme and authority of requests, `public_base_url` what `htu` of a proof begins with.
    """

    socket: str | None
    origin: str
    public_base_url: str

    @property
    def text(self) -> str:
        """As `parse` takes it."""
        return self.origin if self.socket is None else f"unix://{self.socket}"

    @property
    def is_read_on_the_way(self) -> bool:
        """True for plain HTTP to another host: every network between reads what is sent."""
        parts = urlsplit(self.origin)
        return self.socket is None and parts.scheme == "http" and not _is_loopback(parts.hostname or "")

    @classmethod
    def parse(cls, text: str, public_base_url: str | None = None) -> "Address":
        """`unix:///run/gateway/gate.sock` (then `public_base_url` is needed), or `http://HOST:PORT` (then it is that
        URL unless given). Raises ValueError."""
        parts = _split(text)
        if _lacks_scheme(text):
            raise ValueError("the address lacks its scheme: http://HOST:PORT, or unix:///absolute/path for a socket")
        if parts.scheme == "unix":
            path = unquote(parts.path)
            if parts.netloc or parts.query or parts.fragment or not path.startswith("/") or "\0" in path:
                raise ValueError("a Unix socket is written unix:///absolute/path")
            if public_base_url is None:
                raise ValueError("a Unix socket needs public_base_url: proofs are made for it")
            return cls(path, "http://localhost", _base(public_base_url))
        if parts.path not in {"", "/"}:
            raise ValueError("a TCP address has no path: http://HOST:PORT")
        origin = _base(text)
        return cls(None, origin, _base(public_base_url) if public_base_url is not None else origin)


def _split(url: str) -> SplitResult:
    if not url.isprintable() or " " in url:  # urlsplit drops some of these instead of refusing them
        raise ValueError("a gateway's URL has no spaces or control characters")
    return urlsplit(url)


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _lacks_scheme(text: str) -> bool:
    """`127.0.0.1:3000`, `localhost:3000`, `/run/gateway/gate.sock`; urlsplit takes some hosts for schemes."""
    return "://" not in text and not text.startswith("unix:")


def _base(url: str) -> str:
    """An absolute http or https URL without query, without a slash at its end. Raises ValueError.

    Messages never repeat the URL: it may contain a password.
    """
    parts = _split(url)
    if parts.scheme not in _SCHEMES or not parts.hostname or not url.isascii():
        raise ValueError("a gateway's URL is http://HOST:PORT or https://HOST:PORT")
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise ValueError("a gateway's URL has neither user, password, query nor fragment")
    if parts.port == 0:
        raise ValueError("port 0 is no address")
    return f"{parts.scheme}://{parts.netloc.lower()}{parts.path.rstrip('/')}"
