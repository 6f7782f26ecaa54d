"""The headers that pass: few of a request, and all of an answer but those of its connection.

SECURITY: a request's headers are chosen, not filtered: `Client-Cert`, `Forwarded`, `X-Forwarded-*` and the headers of a
connection never reach the gateway from a client. `Client-Cert` is set here alone, from the certificate that TLS has
verified (RFC 9440).
"""

import base64
import re
from collections.abc import Iterable, Sequence
from typing import Final

from ipc.network.edge_headers import CLIENT_CERT

Headers = list[tuple[bytes, bytes]]
PASSED_ON: Final = frozenset({
    b"authorization", b"content-encoding", b"content-type", b"dpop", b"idempotency-key", b"traceparent", b"tracestate",
})  # fmt: skip
MAX_HEADERS: Final = 100
MAX_HEAD: Final = 24 * 1024
"""Leaves room for `Client-Cert` below the gateway's own bound."""
_OF_A_CONNECTION: Final = frozenset({
    b"connection", b"keep-alive", b"proxy-connection", b"proxy-authenticate", b"te", b"trailer", b"transfer-encoding",
    b"upgrade", b"date", b"server",
})  # fmt: skip
_VALUE: Final = re.compile(rb"[\t -~\x80-\xff]*")


class BadHead(Exception):
    """A request's head that is not forwarded."""


def request_headers(given: Iterable[tuple[bytes, bytes]], certificate: bytes | None) -> Headers:
    """The headers for the gateway, without those of the body. Raises BadHead."""
    headers = [(name.lower(), value) for name, value in given]
    names = [name for name, _ in headers]
    if len(headers) > MAX_HEADERS or sum(len(name) + len(value) for name, value in headers) > MAX_HEAD:
        raise BadHead
    lengths = [value for name, value in headers if name == b"content-length"]
    if len(lengths) > 1 or (lengths and b"transfer-encoding" in names):
        raise BadHead
    if b"upgrade" in names or any(_VALUE.fullmatch(value) is None for _, value in headers):
        raise BadHead
    passed = [(name, value) for name, value in headers if name in PASSED_ON]
    if certificate is not None:
        passed.append((CLIENT_CERT.encode(), b":" + base64.b64encode(certificate) + b":"))
    return passed


def stated_length(given: Iterable[tuple[bytes, bytes]]) -> int | None:
    """The length of the body, as the head states it; -1 for no number."""
    lengths = [value for name, value in given if name.lower() == b"content-length"]
    if not lengths:
        return None
    return int(lengths[0]) if re.fullmatch(rb"[0-9]{1,20}", lengths[0]) else -1


def answer_headers(given: Sequence[tuple[bytes, bytes]]) -> Headers:
    """The headers for the client."""
    named = {
        token.strip().lower() for name, value in given if name.lower() == b"connection" for token in value.split(b",")
    }
    gone = _OF_A_CONNECTION | named
    return [(name.lower(), value) for name, value in given if name.lower() not in gone]
