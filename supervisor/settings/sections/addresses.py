"""Kinds of settings that say where to listen and whom to reach: URLs and addresses.

Pure: nothing is resolved and nothing connected to.
"""

import ipaddress
import os
import re
from urllib.parse import urlsplit

from supervisor.settings.kind import PathContext, Wrong, kind
from supervisor.settings.value_kinds import MAX_SOCKET_PATH, host_name, text

_MAX_PORT = 65535


@kind(type="string", pattern='^https?://[^ "<>\\\\^`{|}@?#]+$')
def base_url(value: object, context: PathContext) -> str:
    """http or https, a host, perhaps a port and a path; nothing behind. Returned without a final slash."""
    given = text(value, context)
    mend = 'Use a form like "https://gateway.example".'
    try:
        parts = urlsplit(given)
        port = parts.port
    except ValueError:
        raise Wrong("is not a URL", mend) from None
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        raise Wrong("must be an http or https URL with a host", mend)
    if "@" in parts.netloc or parts.query or parts.fragment or "?" in given or "#" in given:
        raise Wrong("must hold neither user, query nor fragment", mend)
    if not given.isascii() or any(character in ' "<>\\^`{|}' for character in given):
        raise Wrong("holds a character that a URL can't", mend)
    return given.rstrip("/")


@kind(type="string", pattern=r"^https?://([^ \x00-\x20\x7f@/?#\[\]:]+|\[[0-9A-Fa-f:.]+\]):[0-9]{1,5}/?$")
def proxy_url(value: object, context: PathContext) -> str:
    """`http://HOST:PORT` or `https://HOST:PORT` of a proxy; HOST is a name or an address. Returned without a final
    slash."""
    given = base_url(value, context)
    mend = 'Use a form like "http://proxy.internal:3128".'
    parts = urlsplit(given)
    if parts.port is None or parts.path:
        raise Wrong("must name host and port, and nothing else", mend)
    host = parts.hostname or ""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        try:
            host_name(host, context)
        except Wrong:
            raise Wrong("must name a host or an address", mend) from None
    return given


@kind(type="string", pattern='^(https?://[^ "<>\\\\^`{|}@?#]+|unix:///[^ ?#]+)$')
def opa_url(value: object, context: PathContext) -> str:
    """`http://…`, `https://…`, perhaps with a path, or `unix:///PATH` of a socket. Returned without a final slash."""
    given = text(value, context)
    if not given.startswith("unix:"):
        return base_url(value, context)
    path = given.removeprefix("unix://")
    mend = 'Use a form like "unix:///run/opa/opa.sock".'
    if not path.startswith("/") or path.endswith("/") or os.path.normpath(path) != path:
        raise Wrong("must name the socket by its whole path", mend)
    if any(character in " ?#" for character in path):
        raise Wrong("must hold neither space, query nor fragment", mend)
    if len(os.fsencode(path)) > MAX_SOCKET_PATH:
        raise Wrong(f"a socket's path has at most {MAX_SOCKET_PATH} bytes", "Choose a shorter folder.")
    return given


@kind(type="string", pattern=r'^https?://[^ "<>\\^`{|}@?#]+$')
def collector_url(value: object, context: PathContext) -> str:
    """`http://…` or `https://…`, perhaps with a path. Returned without a final slash."""
    return base_url(value, context)


def is_plain_beyond_loopback(url: str) -> bool:
    """Whether what goes to this URL goes over the network in clear."""
    parts = urlsplit(url)
    if parts.scheme != "http" or parts.hostname == "localhost":
        return False
    try:
        return not ipaddress.ip_address(parts.hostname or "").is_loopback
    except ValueError:
        return True


def split_address(given: str) -> tuple[str, int]:
    """`127.0.0.1:3000`, `[::1]:3000` or `localhost:3000` -> (IP address, port). Raises ValueError.

    Only addresses, so that no resolver decides where the gateway listens or connects.
    """
    host, colon, port_text = given.rpartition(":")
    if not colon or not re.fullmatch(r"[0-9]{1,5}", port_text) or int(port_text) > _MAX_PORT:
        raise ValueError(given)
    if host == "localhost":
        return "127.0.0.1", int(port_text)
    is_bracketed = host.startswith("[") and host.endswith("]")
    address = ipaddress.ip_address(host[1:-1] if is_bracketed else host)
    if (address.version == 6) != is_bracketed:
        raise ValueError(given)
    return str(address), int(port_text)


@kind(type="string", pattern=r"^(localhost|[0-9.]+|\[[0-9A-Fa-f:.]+\]):[0-9]{1,5}$")
def listen_address(value: object, _: PathContext) -> str:
    """`ADDRESS:PORT`, port 0 for a free one. Returned with localhost as 127.0.0.1."""
    try:
        host, port = split_address(value if isinstance(value, str) else "")
    except ValueError:
        raise Wrong("must be an IP address and a port", 'Use a form like "127.0.0.1:3000".') from None
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


@kind(**listen_address.form)
def loopback_address(value: object, context: PathContext) -> str:
    """`ADDRESS:PORT` that only this host reaches; the port is a fixed one, since others are configured with it."""
    given = listen_address(value, context)
    host, port = split_address(given)
    if not ipaddress.ip_address(host).is_loopback:
        raise Wrong("must be an address of loopback", 'Use a form like "127.0.0.1:9464", or listen_uds_path.')
    if port == 0:
        raise Wrong("port 0 can't be told to a scraper", "Name the port.")
    return given


@kind(**listen_address.form)
def peer_address(value: object, context: PathContext) -> str:
    """`ADDRESS:PORT` to connect to: like a listening address, but port 0 says nothing."""
    given = listen_address(value, context)
    if given.endswith(":0"):
        raise Wrong("port 0 can't be connected to", "Name the port.")
    return given
