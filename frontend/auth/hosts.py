"""Dev mode's own addresses: whom a request that came over TCP may have been meant for, and which page may have sent it.

A dev gateway listens where every page in a browser on this machine can send to. SECURITY: a page of elsewhere has an
Origin of elsewhere; one whose name was pointed at this machine (DNS rebinding) has a Host of elsewhere. Proofs never
read either header (ipc/htu.py).
"""

from frontend.errors import GateError
from frontend.http.requests import Request
from ipc.htu import normalise_htu
from ipc.settings import Settings

LOOPBACK = ("localhost", "127.0.0.1", "[::1]")


def loopback_aliases(settings: Settings) -> tuple[str, ...]:
    """The base URLs that are one address with `public_base_url`, itself not among them: in dev mode, where that is a
    loopback name with the port that is listened at, the other such names. Nothing of a request is read for it."""
    if not settings.dev_mode:
        return ()
    port = (settings.listen_http_addr or "").rpartition(":")[2]
    named = [f"http://{name}:{port}" for name in LOOPBACK]
    base = normalise_htu(settings.public_base_url).rstrip("/")
    return tuple(one for one in named if one != base) if base in named else ()


class OwnHosts:
    """The values that Host and Origin may have."""

    def __init__(self, settings: Settings) -> None:
        """Of the TCP address that is listened at, by its loopback names, and of `public_base_url`."""
        listened = settings.listen_http_addr or ""
        port = listened.rpartition(":")[2]
        named = {listened.lower(), *(f"{name}:{port}" for name in LOOPBACK)}
        origins = {normalise_htu(f"http://{host}").rstrip("/") for host in named if host}
        base = normalise_htu(settings.public_base_url)
        scheme, _, rest = base.partition("://")
        public = rest.partition("/")[0]
        self._origins = origins | {f"{scheme}://{public}"}
        self._hosts = named | {origin.partition("://")[2] for origin in self._origins} | set(LOOPBACK)

    def check(self, request: Request) -> None:
        """Raises GateError foreign_host for a request that was meant for somebody else, or was sent by another page."""
        for name, value in request.headers:
            if name == "host" and value.lower() not in self._hosts:
                raise GateError("foreign_host", message="Host is not an address of this gateway")
            if name == "origin" and value.lower() not in self._origins:
                raise GateError("foreign_host", message="Origin is not an address of this gateway")
