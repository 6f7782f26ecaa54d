"""Gets the bytes of a document, from a file or by HTTPS, within bounds. Follows no redirect and sends no credential."""

import ipaddress
import ssl
from pathlib import Path
from urllib.parse import urlsplit

import httpcore
import trio

from importing.refusal import ImportRefused
from importing.words import one_line
from ipc.process.exits import Exit

MAX_BYTES = 16 * 1024 * 1024
FETCH_SECONDS = 30.0
_ANSWER_OK = 200


def is_url(place: str) -> bool:
    """True for an address; everything else names a file."""
    return place.startswith(("http://", "https://"))


def fetch(place: str) -> bytes:
    """The document's bytes. Raises ImportRefused."""
    data = _fetched(place) if is_url(place) else _read(place)
    if len(data) > MAX_BYTES:
        raise ImportRefused(f"{place} has more than {MAX_BYTES} bytes.")
    return data


def _read(place: str) -> bytes:
    path = Path(place)
    if path.exists() and not path.is_file():
        raise ImportRefused(f"{place} is no regular file.", Exit.NO_PERMISSION)
    try:
        with path.open("rb") as file:
            return file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        said = error.strerror if isinstance(error, OSError) else "no such name"
        raise ImportRefused(f"{place!a} can't be read: {said}.", Exit.NO_PERMISSION) from None


def _fetched(place: str) -> bytes:
    try:
        parts = urlsplit(place)
        host, has_password = parts.hostname or "", "@" in parts.netloc
        _ = parts.port
    except ValueError:
        raise ImportRefused(f"{place!a} is no address.", Exit.USAGE) from None
    if not host or has_password or not (place.isascii() and place.isprintable() and " " not in place):
        raise ImportRefused(f"{place!a}: write a plain address, without a user and a password.", Exit.USAGE)
    if parts.scheme == "http" and not _is_loopback(host):
        raise ImportRefused(f"{place}: fetched over https, or over http from this machine alone.", Exit.USAGE)
    try:
        data = trio.run(_received, place)
    except (httpcore.TimeoutException, httpcore.NetworkError, httpcore.ProtocolError, httpcore.ProxyError,
            httpcore.UnsupportedProtocol, OSError, UnicodeError) as error:  # fmt: skip
        said = "no host can have this name" if isinstance(error, UnicodeError) else str(error)
        said = one_line(said or type(error).__name__, 200)
        raise ImportRefused(f"{place} can't be fetched: {said}.", Exit.UNAVAILABLE) from None
    if data is None:
        raise ImportRefused(f"{place} took more than {FETCH_SECONDS:g} s.", Exit.UNAVAILABLE)
    return data


async def _received(place: str) -> bytes | None:
    """The answer's bytes; None once the time is over. SECURITY: the deadline is for everything, from the look-up of the
    name on; a server that sends slowly, in head or body, does not move it, and its thread ends with this process."""
    with trio.move_on_after(FETCH_SECONDS):
        return await trio.to_thread.run_sync(_answer, place, abandon_on_cancel=True)
    return None


def _answer(place: str) -> bytes:
    timeouts = dict.fromkeys(("connect", "read", "write", "pool"), FETCH_SECONDS)
    headers = [("Accept", "application/json, application/yaml, */*"), ("Accept-Encoding", "identity")]
    data = bytearray()
    with (
        httpcore.ConnectionPool(ssl_context=ssl.create_default_context()) as pool,
        pool.stream("GET", place, headers=headers, extensions={"timeout": timeouts}) as answer,
    ):
        if answer.status != _ANSWER_OK:
            raise ImportRefused(f"{place} answered {answer.status}; redirects are not followed.", Exit.UNAVAILABLE)
        for piece in answer.iter_stream():
            data += piece
            if len(data) > MAX_BYTES:
                break
    return bytes(data)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
