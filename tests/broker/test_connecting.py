"""How the broker judges where a server of a private network stands."""

import pytest

from broker.connecting import Servers
from frontend.webhooks.network import Blocked
from ipc.configuration.networks import NetworkSettings
from ipc.settings import EgressSettings

HERE = NetworkSettings("here", ("tokens.gateway.test",), ("127.0.0.0/8",), (6379, 8443))


def test_the_broker_reaches_no_server_that_the_gateway_itself_uses() -> None:
    servers = Servers(EgressSettings(networks=(HERE,)), frozenset({"127.0.0.1:6379"}))
    assert servers.judge("tokens.gateway.test", 8443, ["127.0.0.1"]).addresses == ("127.0.0.1",)
    with pytest.raises(Blocked, match="the domain leads to a server that the gateway itself uses"):
        servers.judge("tokens.gateway.test", 6379, ["127.0.0.1"])
