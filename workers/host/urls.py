"""The one reading of a URL that the http host call acts on.

Strict: what RFC 3986 readers differ about (userinfo, backslashes, numeric hosts, raw non-ASCII, empty ports) is
refused, so that the name that was allowed is the name that is connected to. Never resolves anything.
"""

import re
from typing import NamedTuple

from workers.host.meter import HostError

MAX_URL_CHARACTERS = 8192
_LABEL = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_HOST = re.compile(rf"(?:{_LABEL}\.)+{_LABEL}")
_URL = re.compile(
    r"(https?)://([A-Za-z0-9.-]{1,253})(?::([1-9][0-9]{0,4}))?(?=[/?]|\Z)"
    r"((?:/(?:[A-Za-z0-9._~!$&'()*+,;=:@/-]|%[0-9A-Fa-f]{2})*)?)((?:\?(?:[A-Za-z0-9._~!$&'()*+,;=:@/?-]|%[0-9A-Fa-f]{2})*)?)"
)
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
DEFAULT_PORTS = {"http": 80, "https": 443}
_MAX_PORT = 65535


class Target(NamedTuple):
    """Where a request goes. `host` is lower case; `path` holds the query and is never empty."""

    scheme: str
    host: str
    port: int
    path: str

    @property
    def has_own_port(self) -> bool:
        """True for the port that the scheme implies."""
        return self.port == DEFAULT_PORTS[self.scheme]

    @property
    def authority(self) -> str:
        """Value of the Host header."""
        return self.host if self.has_own_port else f"{self.host}:{self.port}"


def parse_url(url: str) -> Target:
    """Raises HostError invalid-input for anything but an absolute http(s) URL in ASCII, denied for an address."""
    match = _URL.fullmatch(url) if len(url) <= MAX_URL_CHARACTERS else None
    if match is None:
        raise HostError("invalid-input", "not a URL that can be sent (absolute, http or https, percent-encoded ASCII)")
    scheme, host, port_text, path, query = match.groups()
    host = host.lower()
    last = host.rpartition(".")[2]
    # SECURITY: every spelling of an IPv4 address (decimal, octal, hexadecimal, shortened) ends in a number.
    if _NUMBER.fullmatch(last) or last == "localhost":
        raise HostError("denied", "the host must be a domain name, not an address")
    if not _HOST.fullmatch(host):
        raise HostError("invalid-input", "the host is not a domain name with a dot")
    port = int(port_text) if port_text else DEFAULT_PORTS[scheme]
    if port > _MAX_PORT:
        raise HostError("invalid-input", "the port is out of range")
    return Target(scheme, host, port, (path or "/") + query)
