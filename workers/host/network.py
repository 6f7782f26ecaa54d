"""The means of the http host call beside the plan of its call. Made before the walls close, the same for all.

Holds values and does nothing by itself.
"""

import ssl
import time
from collections.abc import Callable, Mapping

import msgspec

from ipc.configuration.networks import PlanNetwork
from workers.host.kept import KeptConnections
from workers.host.meter import HostError
from workers.host.resolver import Resolver
from workers.host.urls import Target


class ProxyLimits(msgspec.Struct, frozen=True):
    """How often the egress proxy is asked, and how much of its answer is taken at once."""

    pauses_seconds: tuple[float, ...] = (0.05, 0.25)
    """Before each further try while the proxy says nothing at all: a squid that reads its configuration again closes
    its port for some milliseconds. No byte of a request has been sent by then, so that no request is sent twice."""
    look_again_seconds: float = 0.2
    """Between two tries while a refusal, or silence, may be a list that the proxy has not read yet."""
    read_bytes: int = 64 * 1024
    clock: Callable[[], float] = time.monotonic
    """In seconds, and never goes back."""
    sleep: Callable[[float], None] = time.sleep


class NetworkContext(msgspec.Struct, frozen=True):
    """How a worker of the http profile reaches the world."""

    resolver: Resolver
    tls: ssl.SSLContext
    proxy_limits: ProxyLimits = ProxyLimits()
    proxy_tls: ssl.SSLContext | None = None
    """For a proxy at https; None: by the system's authorities, as `tls`."""
    kept: KeptConnections = msgspec.field(default_factory=KeptConnections)
    network_tls: Mapping[str, ssl.SSLContext | None] = msgspec.field(default_factory=dict)
    """For private networks with files of TLS, by their digest. None: the files can't be used."""
    own_servers: frozenset[str] = frozenset()
    """Servers that no private network leads to."""

    def tls_for(self, target: Target, network: PlanNetwork | None = None) -> ssl.SSLContext | None:
        """The context for TLS with a target in this network; None for one that is reached without. Raises HostError."""
        if target.scheme != "https":
            return None
        if network is None or network.tls is None:
            return self.tls
        context = self.network_tls.get(network.tls)
        if context is None:
            name = network.name
            raise HostError("unavailable", f"the certificate files of the private network {name} can't be used")
        return context
