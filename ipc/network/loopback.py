"""Dev mode's own loopback names: which base URLs are one address with `public_base_url`.

Front and notary must agree on them, and on the name of the ledger: proofs name one as `htu`, operators' signatures as
`aud`. They do not depend on the request.
"""

from typing import Final
from urllib.parse import quote, urlsplit

from ipc.network.htu import normalise_htu
from ipc.settings import Settings

LOOPBACK: Final = ("localhost", "127.0.0.1", "[::1]")


def loopback_aliases(settings: Settings) -> tuple[str, ...]:
    """The base URLs that are one address with `public_base_url`, itself not among them: in dev mode, where that is a
    loopback name with the port that is listened at, the other such names."""
    if not settings.dev_mode:
        return ()
    port = (settings.listen_http_addr or "").rpartition(":")[2]
    named = [f"http://{name}:{port}" for name in LOOPBACK]
    base = normalise_htu(settings.public_base_url).rstrip("/")
    return tuple(one for one in named if one != base) if base in named else ()


def own_addresses(settings: Settings) -> tuple[str, ...]:
    """`public_base_url`, and what is one address with it."""
    return (settings.public_base_url, *loopback_aliases(settings))


def origin_of(public_base_url: str) -> str:
    """The name of a gateway's log: its public address without the scheme."""
    parts = urlsplit(public_base_url)
    return quote(parts.netloc.lower() + parts.path.rstrip("/"), safe="/:.[]%-_~")


def ledger_origin(settings: Settings) -> str:
    """The name under which checkpoints of the ledger are signed."""
    return settings.evidence.origin or origin_of(settings.public_base_url)
