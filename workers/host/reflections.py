"""Answers that hold a secret of the call: an upstream that reflects what it was sent must not hand it on.

Guarantees that a searchable secret (ipc/keys/secret_values.py) is found in headers and body of an answer, whatever its
case and the white space in it: as it is, in base64 (both alphabets, at any place of a longer text), in hex, in UTF-16,
and percent-, JSON- or HTML-escaped, also twice. Not found: parts of a secret, and what was compressed, encrypted or
hashed. Reads values, keeps them no longer than the call, and never puts one in an error.
"""

import base64
import binascii
import html
import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from urllib.parse import quote, quote_plus

from ipc.keys.secret_values import is_searchable
from workers.host.wire import Response

_ROUNDS = 3
"""How often an answer is unescaped: escapes of escapes."""
_ESCAPES_BETWEEN_PULSES = 10_000
_ESCAPE = re.compile(
    rb"%([0-9A-Fa-f]{2})|\\(?:u00|x)([0-9A-Fa-f]{2})|\\([\\/\"'nrt])|(&(?:#[0-9A-Za-z]{1,6}|[a-z]{2,5});)"
)
_BLANKS = {b"n": b"\n", b"r": b"\r", b"t": b"\t"}
_IGNORED = b"\0\t\n\r "
_ALPHABET = bytes.maketrans(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ-_", b"abcdefghijklmnopqrstuvwxyz+/")


class Reflections:
    """The secrets that one call may send."""

    def __init__(self, secrets: Mapping[str, str]) -> None:
        self._forms: dict[str, frozenset[bytes]] = {name: _forms(value) for name, value in secrets.items()}

    def add(self, name: str, value: str) -> None:
        """A secret has another value. The one before was sent, too."""
        self._forms[name] |= _forms(value)

    def found_in(self, response: Response, pulse: Callable[[], object]) -> str | None:
        """Name of a secret that the answer holds. `pulse` is called between steps, and raises when time is over."""
        parts = [response.body, *(f"{name}: {value}".encode("latin-1") for name, value in response.headers)]
        for view in _views(b"\n".join(parts), pulse):
            comparable = _comparable(view)
            for name, forms in self._forms.items():
                for form in forms:
                    pulse()
                    if form in comparable:
                        return name
        return None


def _views(data: bytes, pulse: Callable[[], object]) -> Iterator[bytes]:
    """An answer as it is, and as readers of its escapes see it."""
    yield data
    view = data.replace(b"\0", b"")
    for _ in range(_ROUNDS):
        plain = _unescape(view, pulse)
        if plain == view:
            return
        yield plain
        view = plain


def _unescape(data: bytes, pulse: Callable[[], object]) -> bytes:
    """Each escape replaced. `sub` makes an object of each piece first: that took forty times the memory of an answer,
    and a worker has sixteen calls."""
    plain, done = bytearray(), 0
    for number, match in enumerate(_ESCAPE.finditer(data), 1):
        if number % _ESCAPES_BETWEEN_PULSES == 0:
            pulse()
        plain += data[done : match.start()]
        plain += _unescaped(match)
        done = match.end()
    if not done:
        return data
    plain += data[done:]
    return bytes(plain)


def _unescaped(match: re.Match[bytes]) -> bytes:
    digits = match[1] or match[2]
    if digits:
        return bytes((int(digits, 16),))
    if match[3]:
        return _BLANKS.get(match[3], match[3])
    return html.unescape(match[4].decode()).encode()


def _forms(value: str) -> frozenset[bytes]:
    """Forms of a value in an answer, ready to compare. Parts so short that they occur by chance are left out."""
    forms: set[bytes] = set()
    for text in filter(is_searchable, _secrets_in(value)):
        quoted = json.dumps(text)[1:-1]
        for spelling in {text, quote(text, safe=""), quote_plus(text), quoted, quoted.replace("/", "\\/")}:
            forms |= _encoded(spelling.encode())
        # UTF-16 by hand: behind its walls a worker can't load the codec.
        forms |= _encoded("\0".join(text).encode() + b"\0")
    return frozenset(forms)


def _encoded(text: bytes) -> set[bytes]:
    return {_comparable(text), text.hex().encode(), *map(_comparable, _in_base64(text))}


def _secrets_in(value: str) -> Iterator[str]:
    """The value; what follows its scheme, as in `Bearer TOKEN`; the password of credentials, also in base64."""
    credentials = value.partition(" ")[2] or value
    decoded = ""
    with suppress(binascii.Error, UnicodeError):
        decoded = binascii.a2b_base64(credentials.encode(), strict_mode=True).decode("ascii")
    yield from (value, credentials, decoded)
    yield from (one.partition(":")[2] for one in (credentials, decoded))


def _in_base64(text: bytes) -> Iterator[bytes]:
    """The characters that stand for the text and nothing else, for each place where a longer text may have it."""
    for offset in range(3):
        encoded = base64.b64encode(b"\0" * offset + text)
        yield encoded[(offset * 8 + 5) // 6 : (offset + len(text)) * 8 // 6]


def _comparable(data: bytes) -> bytes:
    return data.translate(_ALPHABET, _IGNORED)
