"""The gateway's own addresses: whom a request over TCP may have been meant for, and which page may have sent it.

A dev gateway, and one whose metrics are read by TCP, listens where every page in a browser on this machine can send to.
SECURITY: a page of elsewhere has an Origin of elsewhere; one whose name was pointed at this machine (DNS rebinding) has
a Host of elsewhere. Proofs never read either header (ipc/network/htu.py).
"""

from frontend.errors import GateError
from frontend.http.requests import Request
from ipc.network.htu import normalise_htu
from ipc.network.loopback import LOOPBACK
from ipc.settings import Settings


class OwnHosts:
    """The values that Host and Origin may have."""

    def __init__(self, listened: str, public_base_url: str) -> None:
        """Takes the TCP address that is listened at, with its loopback names, and the URL that clients use."""
        port = listened.rpartition(":")[2]
        named = {listened.lower(), *(f"{name}:{port}" for name in LOOPBACK)}
        origins = {normalise_htu(f"http://{host}").rstrip("/") for host in named if host}
        base = normalise_htu(public_base_url)
        scheme, _, rest = base.partition("://")
        public = rest.partition("/")[0]
        self._origins = origins | {f"{scheme}://{public}"}
        self._hosts = named | {origin.partition("://")[2] for origin in self._origins} | set(LOOPBACK)

    def check(self, request: Request) -> None:
        """Raises GateError foreign_host for a request that was meant for another host, or was sent by another page."""
        for name, value in request.headers:
            if name == "host" and value.lower() not in self._hosts:
                raise GateError("foreign_host", message="Host is not an address of this gateway")
            if name == "origin" and value.lower() not in self._origins:
                raise GateError("foreign_host", message="Origin is not an address of this gateway")


def own_hosts(settings: Settings) -> dict[str, OwnHosts]:
    """By kind of listening socket, where Host and Origin are looked at."""
    hosts = {}
    if settings.dev_mode:
        hosts["merged"] = OwnHosts(settings.listen_http_addr or "", settings.public_base_url)
    if settings.metrics.listen is not None:
        hosts["metrics"] = OwnHosts(settings.metrics.listen, f"http://{settings.metrics.listen}")
    return hosts
