"""The example of squid for operators (contrib/squid): the configuration, on a real squid, and the units beside it."""

import configparser
import ipaddress
import os
import re
import shlex
import socket
import subprocess
import sys
from collections.abc import Iterator
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path

import pytest

from ipc.network import addresses
from tests.support.gateway import wait_for
from tests.support.manifests import REPOSITORY
from tests.support.processes import is_running
from tests.support.squid import EXAMPLE, FETCHED, Line, Squid, squid
from tests.support.upstream import Upstream

HOST = "upstream.gateway.test"
BELOW = "a.wild.gateway.test"
WILD = "wild.gateway.test"


@pytest.fixture(scope="module")
def port(up: Upstream) -> int:
    """Where the upstream listens."""
    return int(up.address.rpartition(":")[2])


@pytest.fixture(scope="module")
def proxy(port: int) -> Iterator[Squid]:
    """A squid for which loopback is public."""
    with squid((HOST, BELOW, WILD, "other.gateway.test"), [port], allowed=(HOST, f".{WILD}")) as running:
        yield running


def ask(proxy: Squid, head: str) -> int:
    """Status of the answer to one request."""
    with socket.create_connection(("127.0.0.1", proxy.port), 60) as stream:
        stream.sendall(f"{head}\r\nHost: {HOST}\r\n\r\n".encode())
        answer = stream.recv(65536)
    return int(answer.split(b" ")[1])


def test_a_tunnel_to_a_name_of_the_list_stands(proxy: Squid, port: int) -> None:
    assert [ask(proxy, f"CONNECT {name}:{port} HTTP/1.1") for name in (HOST, BELOW, WILD)] == [200, 200, 200]


@pytest.mark.parametrize(
    "head",
    [
        "CONNECT other.gateway.test:{port} HTTP/1.1",
        f"CONNECT x.{HOST}:{{port}} HTTP/1.1",
        "CONNECT 127.0.0.1:{port} HTTP/1.1",
        "CONNECT [::1]:{port} HTTP/1.1",
        f"CONNECT {HOST}:22 HTTP/1.1",
        f"CONNECT {HOST}:80 HTTP/1.1",
        f"GET http://{HOST}:{{port}}/ HTTP/1.1",
        f"POST http://{HOST}/ HTTP/1.1",
    ],
)
def test_anything_else_is_refused(proxy: Squid, port: int, up: Upstream, head: str) -> None:
    seen = len(up.seen)
    assert ask(proxy, head.format(port=port)) == 403
    assert len(up.seen) == seen


def test_the_list_is_read_again_without_a_restart(proxy: Squid, port: int) -> None:
    pid, tunnel = proxy.pid, f"CONNECT other.gateway.test:{port} HTTP/1.1"
    proxy.allow("other.gateway.test")
    assert (ask(proxy, tunnel), ask(proxy, f"CONNECT {HOST}:{port} HTTP/1.1")) == (200, 403)
    proxy.allow()
    assert ask(proxy, tunnel) == 403, "an empty list allows nothing"
    proxy.allow(HOST, f".{WILD}")
    assert (ask(proxy, tunnel), proxy.pid) == (403, pid)


def test_the_gateways_question_is_answered_and_fills_no_log(proxy: Squid) -> None:
    assert ask(proxy, "OPTIONS * HTTP/1.1\r\nMax-Forwards: 0") == 501
    assert ask(proxy, f"CONNECT {HOST}:1 HTTP/1.1") == 403
    wait_for(lambda: Line(403, "CONNECT", f"{HOST}:1") in proxy.lines(), "what was asked afterwards")
    assert not [line for line in proxy.lines() if line.method != "CONNECT" and line.target == "*"]


def test_what_squid_reads_once_it_is_nobody_lies_where_nobody_may_read(proxy: Squid) -> None:
    assert str(FETCHED) not in (proxy.folder / "squid.conf").read_text(), "a checkout may be closed to others"


def test_a_name_that_leads_to_a_private_address_is_refused(port: int) -> None:
    with squid([HOST], [port], is_strict=True) as strict:
        assert ask(strict, f"CONNECT {HOST}:{port} HTTP/1.1") == 403
        assert not [line for line in strict.says().splitlines() if "ERROR" in line or "FATAL" in line]


def test_a_squid_of_tests_ends_with_whoever_runs_them() -> None:
    script = (
        "import time\nfrom tests.support.squid import squid\n"
        "with squid(['a.gateway.test']) as made:\n    print(made.pid, made.folder, flush=True)\n    time.sleep(600)\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, cwd=REPOSITORY) as tests:
        assert tests.stdout is not None
        pid, folder = tests.stdout.readline().split()
        tests.kill()
    wait_for(lambda: not Path(folder).exists(), "the folder of a squid whose tests were killed to go")
    wait_for(lambda: not is_running(int(pid)), "a squid whose tests were killed to end")


# ------------------------------------------------------------------------------------------------ the files


def listed() -> tuple[list[IPv4Network], list[IPv6Network]]:
    """The addresses that the configuration calls not public."""
    words = [
        word for line in re.findall(r"^acl not_public dst (.+)$", EXAMPLE.read_text(), re.M) for word in line.split()
    ]
    networks = [ipaddress.ip_network(word) for word in words]
    return (
        [one for one in networks if isinstance(one, IPv4Network)],
        [one for one in networks if isinstance(one, IPv6Network)]
    )  # fmt: skip


def test_what_is_not_public_for_the_gateway_is_not_public_for_squid() -> None:
    old, new = listed()
    assert set(ipaddress.collapse_addresses(old)) == set(ipaddress.collapse_addresses(addresses._BLOCKED_V4))
    assert {one for one in new if one.subnet_of(IPv6Network("2000::/3"))} == set(addresses._BLOCKED_V6)


@pytest.mark.parametrize(
    "address",
    [
        "::", "::1", "::127.0.0.1", "::ffff:0:127.0.0.1", "64:ff9b::7f00:1", "64:ff9b:1::1", "100::1", "1fff::1",
        "4000::1", "5f00::1", "fc00::1", "fdff::1", "fe80::1", "fec0::1", "ff02::1", "ffff::1",
    ],
)  # fmt: skip
def test_no_address_but_global_unicast_is_public_for_squid(address: str) -> None:
    parsed = ipaddress.IPv6Address(address)
    assert [one for one in listed()[1] if parsed in one]


def test_no_network_of_the_next_protocol_swallows_those_of_the_old_one() -> None:
    # squid keeps an IPv4 address as ::ffff:a.b.c.d
    assert not [one for one in listed()[1] if one.overlaps(IPv6Network("::ffff:0:0/96"))]


def unit(name: str) -> configparser.ConfigParser:
    parser = configparser.ConfigParser(interpolation=None, delimiters=["="])
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string((EXAMPLE.parent / name).read_text().replace("\\\n", ""))
    return parser


def test_the_units_watch_the_file_that_the_configuration_reads() -> None:
    path, service = unit("gateway-squid.path"), unit("gateway-squid.service")
    watched = path["Path"]["PathChanged"]
    assert f'dstdomain -n "{watched}"' in EXAMPLE.read_text()
    assert path["Path"]["Unit"] == "gateway-squid.service"
    assert service["Service"]["ExecStart"].endswith(f" {watched}")


@pytest.mark.parametrize(("changes", "runs", "code"), [(0, 1, 0), (2, 3, 0), (-1, 1, 1)], ids=["once", "anew", "fails"])
def test_squid_reads_again_until_nothing_has_changed_meanwhile(
    tmp_path: Path, changes: int, runs: int, code: int
) -> None:
    """A squid that counts its runs; during the first ones the file changes; with -1 it fails."""
    domains, counter = tmp_path / "domains", tmp_path / "runs"
    domains.touch()
    stub = tmp_path / "squid"
    stub.write_text(
        f'#!/bin/sh\necho "$@" >> {counter}\ncount=$(wc -l < {counter})\n[ {changes} -ge 0 ] || exit 1\n'
        f"if [ $count -le {changes} ]; then echo $count > {domains}.new; mv {domains}.new {domains}; fi\n"
    )
    stub.chmod(0o755)
    command = shlex.split(unit("gateway-squid.service")["Service"]["ExecStart"].replace("$$", "$").replace("%%", "%"))
    environment = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run([*command[:-1], str(domains)], env=environment, timeout=60, check=False)
    assert (done.returncode, counter.read_text().splitlines()) == (code, ["-k reconfigure"] * runs)
