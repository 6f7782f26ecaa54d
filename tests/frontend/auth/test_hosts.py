"""Which Host and Origin a dev gateway takes for its own."""

import pytest

from frontend.auth.hosts import OwnHosts, own_hosts
from frontend.errors import GateError
from frontend.http.requests import Request
from ipc.network.loopback import loopback_aliases, own_addresses
from ipc.settings import MetricsSettings, Settings


def is_own(listened: str, public: str, **headers: str) -> bool:
    own = OwnHosts(listened, public)
    request = Request("GET", "/", headers=list(headers.items()))
    try:
        own.check(request)
    except GateError as error:
        return error.status != 403
    return True


HERE = ("127.0.0.1:3000", "http://127.0.0.1:3000")


OWN_HOSTS = ["127.0.0.1:3000", "localhost:3000", "LocalHost:3000", "[::1]:3000", "localhost", "127.0.0.1", "[::1]"]
OTHER_HOSTS = [
    "evil.test", "evil.test:3000", "localhost:3001", "127.0.0.1:80", "127.0.0.2:3000", "localhost.evil.test:3000",
    "localhost:3000.evil.test", "x@localhost:3000", "localhost:3000/", "[::1]:3001", "0.0.0.0:3000", "", ":3000",
]  # fmt: skip
OWN_ORIGINS = ["http://127.0.0.1:3000", "http://localhost:3000", "http://[::1]:3000"]
OTHER_ORIGINS = [
    "null", "", "http://evil.test", "https://127.0.0.1:3000", "http://localhost", "http://localhost:8080",
    "http://localhost:3000.evil.test", "http://localhost:3000/", "file://", "127.0.0.1:3000",
]  # fmt: skip


@pytest.mark.parametrize(("host", "own"), [(one, True) for one in OWN_HOSTS] + [(one, False) for one in OTHER_HOSTS])
def test_loopback_names_are_its_own_and_any_other_host_is_foreign(host: str, own: bool) -> None:
    assert is_own(*HERE, host=host) is own


@pytest.mark.parametrize(
    ("origin", "own"), [(one, True) for one in OWN_ORIGINS] + [(one, False) for one in OTHER_ORIGINS]
)
def test_its_own_pages_may_ask_and_those_of_elsewhere_may_not(origin: str, own: bool) -> None:
    assert is_own(*HERE, host="127.0.0.1:3000", origin=origin) is own


def test_the_public_address_is_its_own_too() -> None:
    there = ("0.0.0.0:3000", "https://gate.dev.test/base")
    assert is_own(*there, host="gate.dev.test", origin="https://gate.dev.test")
    assert is_own(*there, host="localhost:3000")
    assert not is_own(*there, host="gate.dev.test:3000")
    assert not is_own(*there, host="gate.dev.test", origin="http://gate.dev.test")


def test_at_port_80_the_port_may_be_left_out() -> None:
    assert is_own("127.0.0.1:80", "http://127.0.0.1", host="localhost", origin="http://localhost")


def test_a_request_that_names_no_host_was_sent_by_no_page() -> None:
    assert is_own(*HERE)


@pytest.mark.parametrize(
    ("dev_mode", "metrics", "own"),
    [(False, None, {}), (True, None, {"merged": 3000}), (False, "127.0.0.1:9464", {"metrics": 9464})],
)  # fmt: skip
def test_they_are_looked_at_where_a_page_on_this_machine_can_send_to(
    dev_mode: bool, metrics: str | None, own: dict[str, int]
) -> None:
    settings = Settings(
        "/nowhere", HERE[1], listen_http_addr=HERE[0], dev_mode=dev_mode, metrics=MetricsSettings(listen=metrics)
    )
    hosts = own_hosts(settings)
    assert hosts.keys() == own.keys()
    for kind, port in own.items():
        hosts[kind].check(Request("GET", "/", headers=[("host", f"localhost:{port}")]))


def aliases(listened: str, public: str, *, dev_mode: bool = True) -> set[str]:
    settings = Settings("/nowhere", public, listen_http_addr=listened, dev_mode=dev_mode)
    return set(loopback_aliases(settings))


@pytest.mark.parametrize("public", ["http://127.0.0.1:3000", "http://localhost:3000/", "http://[::1]:3000"])
def test_in_dev_mode_the_loopback_names_with_its_port_are_one_address(public: str) -> None:
    names = {f"http://{name}:3000" for name in ("127.0.0.1", "localhost", "[::1]")}
    assert aliases("127.0.0.1:3000", public) == names - {public.rstrip("/")}


@pytest.mark.parametrize("public", ["https://gate.test", "http://localhost:3001", "https://localhost:3000"])
def test_another_public_address_has_no_other_name(public: str) -> None:
    assert aliases("127.0.0.1:3000", public) == set()


def test_outside_dev_mode_nothing_has_two_names() -> None:
    assert aliases(*HERE, dev_mode=False) == set()
    assert own_addresses(Settings("/nowhere", HERE[1], listen_http_addr=HERE[0])) == (HERE[1],)
