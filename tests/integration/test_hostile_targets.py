"""Targets that must never be reached: every spelling of an address, names that lead to one, what hides another host.

A module asks for each of them, over the public interface, once by an action that goes out directly and once by one that
must use the proxy; both in one gateway, whose hosts file leads names to private addresses. The proxy notes what it is
asked for and lets nothing through. All of it holds with private networks in the configuration, for names that are of
none and for names that are of one with other ranges.
"""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.hosts_file import can_change_hosts, gateway_with_hosts
from tests.support.manifests import open_policy, write_manifests
from tests.support.proxied import probe
from tests.support.upstream import Upstream

pytestmark = pytest.mark.skipif(not can_change_hosts(), reason="needs a mount namespace, for a hosts file of its own")

ZONE = "gateway.test"
SPELLED = [
    # IPv4 in every base, shortened, padded, overflowing
    "http://127.0.0.1/", "http://127.1/", "http://127.0.1/", "http://2130706433/", "http://0x7f000001/", "http://0x7f.1/",
    "http://0x7F.0x0.0x0.0x1/", "http://017700000001/", "http://0177.0.0.1/", "http://0177.1/", "http://127.000.000.001/",
    "http://127.0.0.1./", "http://0/", "http://0.0.0.0/", "http://4294967297/", "http://10.0.0.1/", "http://192.168.0.1/",
    "http://172.16.0.1/", "http://169.254.169.254/", "http://169.254.169.254/latest/meta-data/", "http://2852039166/",
    "http://0xa9fea9fe/", "http://100.100.100.200/", "http://168.63.129.16/", "http://255.255.255.255/",
    "http://224.0.0.1/", "http://8.8.8.8/", "http://1.1.1.1:80/",
    # IPv6, mapped, compatible, with zones, and other ways to hide IPv4 in it
    "http://[::1]/", "http://[::]/", "http://[0:0:0:0:0:0:0:1]/", "http://[::ffff:127.0.0.1]/", "http://[::ffff:7f00:1]/",
    "http://[::127.0.0.1]/", "http://[fe80::1]/", "http://[fe80::1%25lo]/", "http://[fe80::1%lo]/", "http://[fd00::1]/",
    "http://[fd00:ec2::254]/", "http://[64:ff9b::7f00:1]/", "http://[2002:7f00:1::]/", "http://[2001:0:7f00:1::]/",
    "http://[ff02::1]/", "http://::1/", "http://[::1/",
    # names for this host, and invalid names
    "http://localhost/", "http://LOCALHOST/", "http://localhost./", f"http://x.{ZONE}./", "http://a.localhost/",
    "http://localhost.localdomain/", "http://ip6-localhost/", "http://metadata/", "http://metadata.google.internal/",
    "http://host.docker.internal/", "http://kubernetes.default.svc/", "http://127.0.0.1.nip.io/", "http://single/",
    f"http://{ZONE}/", f"http://evil{ZONE}/", f"http://{ZONE}.evil.test/", f"http://x.{ZONE}.evil.test/",
    f"http://*.{ZONE}/", f"http://.{ZONE}/", f"http://x..{ZONE}/", f"http://-x.{ZONE}/", f"http://x_y.{ZONE}/",
    # another host behind an allowed one
    f"http://x.{ZONE}@127.0.0.1/", f"http://user:pw@x.{ZONE}/", f"http://127.0.0.1@x.{ZONE}/", f"http://x.{ZONE}\\@127.0.0.1/",
    f"http://127.0.0.1#@x.{ZONE}/", f"http://127.0.0.1?@x.{ZONE}/", f"http://127.0.0.1/?x.{ZONE}",
    f"http://x.{ZONE}%00.127.0.0.1/", f"http://x.{ZONE}%2f@127.0.0.1/", f"http://127.0.0.1%2f.{ZONE}/",
    f"http://x.{ZONE}\r\nHost: 127.0.0.1/", f"http://x.{ZONE}\t/", f"http:///x.{ZONE}/", f"//x.{ZONE}/",
    f"http:x.{ZONE}/",
    # IDNA: characters that become dots, digits or letters
    "http://\uff11\uff12\uff17.0.0.1/", "http://127\u30020\u30020\u30021/", "http://\u24db\u24de\u24d2alhost/",
    f"http://x\u3002{ZONE}/", "http://\u2488\u2488\u2488\u2488/", "http://xn--n3h.evil.test/",
    # ports and schemes that no rule allows
    f"http://x.{ZONE}:22/", f"http://x.{ZONE}:0/", f"http://x.{ZONE}:080/", f"http://x.{ZONE}:65616/", f"http://x.{ZONE}:/",
    f"http://x.{ZONE}:443/", f"https://x.{ZONE}:80/", f"https://x.{ZONE}:6379/", f"ftp://x.{ZONE}/", f"gopher://x.{ZONE}/",
    "file:///etc/passwd", "unix:///run/gateway.sock", f"HTTP://x.{ZONE}/",
]  # fmt: skip
ADDRESSES = [
    "127.0.0.1", "127.0.0.2", "127.255.255.254", "0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255", "172.16.0.1",
    "172.31.255.255", "192.168.0.1", "169.254.0.1", "168.63.129.16", "169.254.169.254", "169.254.170.2", "100.64.0.1",
    "100.100.100.200",
    "100.127.255.255", "192.0.0.1", "192.0.0.192", "192.0.2.1", "198.18.0.1", "198.19.255.255", "198.51.100.1",
    "203.0.113.1", "192.88.99.1", "224.0.0.1", "239.255.255.250", "240.0.0.1", "255.255.255.255",
    "::1", "::", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "::ffff:8.8.8.8", "::127.0.0.1",
    "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::1", "2002:7f00:1::", "2002:a00:1::", "2001::1",
    "2001:0:7f00:1::", "2001:db8::1", "fe80::1", "febf::1", "fec0::1", "fc00::1", "fd00::1", "fd00:ec2::254", "ff02::1",
    "ff05::2", "100::1", "3fff::1", "5f00::1",
]  # fmt: skip
NAMES = {f"a{number}.{ZONE}": address for number, address in enumerate(ADDRESSES)}
INSIDE = {f"a{number}.in.{ZONE}": address for number, address in enumerate(ADDRESSES)}
"""Names of a network that leads into 10.77.0.0/16 alone."""
NETWORKS = f"""[[egress.networks]]
name = "in"
domains = ["*.in.{ZONE}"]
ranges = ["10.77.0.0/16"]
[[egress.networks]]
name = "elsewhere"
domains = ["elsewhere.{ZONE}", "*.elsewhere.{ZONE}"]
ranges = ["10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "172.16.0.0/12", "192.0.0.0/24", "fc00::/32", "fd00::/32"]
ports = [80, 443]
"""
REDIRECTED = f"http://redirect.{ZONE}/status/302"


class _Proxy:
    """Takes connections, notes the first line of each, refuses."""

    def __init__(self, listening: socket.socket) -> None:
        self._listening = listening
        self.asked: list[str] = []
        self.url = f"http://127.0.0.1:{listening.getsockname()[1]}"

    def run(self) -> None:
        """Until the listening socket is shut."""
        while True:
            try:
                stream, _ = self._listening.accept()
            except OSError:
                return
            with suppress(OSError), stream, stream.makefile("rb") as lines:  # its client may have given up
                line = lines.readline(4096).decode("latin-1")
                if line.startswith("CONNECT "):
                    self.asked.append(line.split(" ")[1])
                stream.sendall(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")


@contextmanager
def noting_proxy() -> Iterator[_Proxy]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        proxy = _Proxy(listening)
        thread = threading.Thread(target=proxy.run)
        thread.start()
        try:
            yield proxy
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            thread.join()


@dataclass
class Seen:
    """The outcome of each URL, by way, and the requests to the proxy and the upstream."""

    answers: dict[str, dict[str, dict[str, Any]]]
    proxied: list[str]
    upstream: list[str]


@pytest.fixture(scope="module")
def seen(up: Upstream, tmp_path_factory: pytest.TempPathFactory) -> Seen:
    folder: Path = tmp_path_factory.mktemp("targets")
    urls = [*SPELLED, *(f"http://{name}/" for name in NAMES | INSIDE), REDIRECTED]
    limits = {"fuel": 10**13, "timeout_seconds": 300, "max_io_calls": len(urls), "memory_mb": 256}
    made = probe(folder / "actions", f"*.{ZONE}") | {"resource_limits": limits}
    direct = made | {"action_id": "direct", "egress": made["egress"] | {"profile": "direct_allowlist"}}
    write_manifests(folder / "actions", made, direct)
    policy = open_policy(folder / "policy", "probe", "direct")
    (folder / "hosts").write_text("".join(f"{address} {name}\n" for name, address in (NAMES | INSIDE).items()))
    before = len(up.seen)
    with noting_proxy() as proxy:
        config = f'manifests_dir = "{folder / "actions"}"\npolicy_dir = "{policy}"\negress_proxy_url = "{proxy.url}"\n'
        config += f'[egress]\nunsafe_resolve = {{"redirect.{ZONE}" = "{up.address}"}}\n{NETWORKS}'
        with gateway_with_hosts(folder, config) as gate:
            agent = gate.agent()
            answers: dict[str, dict[str, dict[str, Any]]] = {}
            for way in ("direct", "probe"):
                answer = agent.execute(way, {"steps": [{"method": "GET", "url": url} for url in urls]})
                assert answer.status_code == 200, answer.text
                answers[way] = dict(zip(urls, answer.json()["output"]["results"], strict=True))
    return Seen(answers, proxy.asked, [one.path for one in up.seen[before:]])


def test_there_are_more_than_eighty_spellings_and_each_once() -> None:
    assert len(set(SPELLED)) == len(SPELLED) > 80
    assert len(set(ADDRESSES)) == len(ADDRESSES) > 50


@pytest.mark.parametrize("way", ["direct", "probe"])
@pytest.mark.parametrize("url", SPELLED, ids=ascii)
def test_a_target_that_is_no_plain_allowed_name_is_refused_before_anybody_is_asked(
    seen: Seen, url: str, way: str
) -> None:
    assert seen.answers[way][url].get("error", {}).get("kind") in ("denied", "invalid_input"), seen.answers[way][url]


@pytest.mark.parametrize("name", NAMES, ids=[*NAMES.values()])
def test_a_name_that_leads_to_an_address_that_is_not_public_is_refused(seen: Seen, name: str) -> None:
    error = seen.answers["direct"][f"http://{name}/"]["error"]
    assert (error["kind"], error["message"]) == ("denied", "the domain leads to a private or reserved address")
    error = seen.answers["probe"][f"http://{name}/"]["error"]
    assert (error["kind"], error["message"]) == ("denied", "the egress proxy refused the upstream")


@pytest.mark.parametrize("name", INSIDE, ids=[*INSIDE.values()])
def test_a_name_of_a_network_that_leads_elsewhere_is_refused(seen: Seen, name: str) -> None:
    error = seen.answers["direct"][f"http://{name}/"]["error"]
    assert (error["kind"], error["message"]) == ("denied", "the domain leads outside the private network in")


def test_the_proxy_is_asked_for_allowed_names_by_name_and_for_nothing_else(seen: Seen) -> None:
    assert seen.proxied == [*(f"{name}:80" for name in NAMES | INSIDE), f"redirect.{ZONE}:80"]


def test_a_redirect_to_a_private_address_is_an_answer_that_nobody_follows(seen: Seen) -> None:
    assert seen.answers["direct"][REDIRECTED]["status"] == 302
    assert seen.upstream == ["/status/302"]
