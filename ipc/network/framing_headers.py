"""Headers of a request to an upstream that its worker alone writes: they say how the message travels (RFC 9110 §7.6.1).

One list for both: the check refuses a manifest that names one, and a worker refuses a provider that sends one.
"""

from typing import Final

_NAMES: Final = frozenset({
    "connection", "content-length", "expect", "host", "http2-settings", "keep-alive", "te", "trailer",
    "transfer-encoding", "upgrade",
})  # fmt: skip


def is_framing_header(name: str) -> bool:
    """True for a header of the host's own, in any case: the headers for proxies are among them."""
    name = name.lower()
    return name in _NAMES or name.startswith("proxy-")
