"""Where the fixed hosts of manifests lead, and whether they answer: `gateway check --connect` for actions that go out
directly.

Each name is looked up as a worker would and judged by the same rule; where a template, the section `mcp` or a
`token_url` names host and port it is connected to, and TLS is agreed on. Sends no request. A name that can't be looked
up now says little about a later call: a warning where one of them names it, else nothing. The report names each host
that was not reached in UPSTREAM_SECONDS.
"""

import re
import socket
import ssl
from collections.abc import Iterator, Set
from functools import partial
from pathlib import Path
from typing import NamedTuple

import trio

from frontend.actions.networks import DIRECT
from frontend.actions.registry import load_manifests
from frontend.configuration.inspection import found
from frontend.files.problems import FileProblem, Report
from frontend.manifests.manifest import Manifest
from frontend.manifests.reading import read_file
from ipc.configuration.networks import NetworkTls, PlanNetwork
from ipc.configuration.secret_ways import AsToken
from ipc.messages.checking import FoundProblem
from ipc.network.name_addresses import MAX_ADDRESSES
from ipc.network.own_servers import own_servers
from ipc.network.reach import NEVER, Reach, ReachRefused, hidden_in, networks_for, networks_of, reach_of
from ipc.network.tls import client_context, problem_of, show_certificate
from ipc.settings import Settings

UPSTREAM_SECONDS = 60.0
ANSWER_SECONDS = 5.0
"""For one address."""
MAX_AT_ONCE = 16
PRIVATE_NETWORKS = 'docs/egress.md, "Private networks"'
_LAST_INDEX = re.compile(r"\[[0-9]+\]\Z")
_FIXED = re.compile(r"(https?)://([A-Za-z0-9.-]+)(?::([0-9]{1,5}))?(?=[/?{]|\Z)")
_DEFAULT_PORTS = {"http": 80, "https": 443}


class FixedHost(NamedTuple):
    """A name of a manifest. `scheme` and `port` where a template, the section `mcp` or a `token_url` names them."""

    name: str
    scheme: str | None = None
    port: int | None = None


class NamedHost(NamedTuple):
    """A host, and the place in the manifest that names it."""

    host: FixedHost
    place: tuple[str | int, ...]


class UpstreamDoubt(NamedTuple):
    """A fault of a host, and the mend. `weight`: problem, warning, or unreached, since it may answer later."""

    message: str
    mend: str
    weight: str = "problem"


async def look_at_upstreams(settings: Settings) -> list[FoundProblem]:
    """A problem for each domain of a manifest that leads where no call may, or that does not answer."""
    manifests, _ = load_manifests(Path(settings.manifests_dir), has_proxy=settings.egress_proxy_url is not None)
    direct = [one for one in manifests if one.egress.profile == DIRECT]
    named = {one.host for manifest in direct for one in _hosts(manifest)}
    hosts = {host for host in named if host.name not in settings.egress.unsafe_resolve}
    doubts = await look_at_hosts(settings, hosts)
    return [problem for manifest in direct for problem in _problems(manifest, doubts)]


def _hosts(manifest: Manifest) -> Iterator[NamedHost]:
    """The names of a manifest without a wildcard, in the order of its lists."""
    urls = [manifest.template and manifest.template.url_template, manifest.mcp and manifest.mcp.url]
    fixed = next((host for url in urls if url and (host := fixed_host(url))), None)
    for index, name in enumerate(manifest.egress.allowed_domains):
        place = ("egress", "allowed_domains", index)
        if fixed is not None and fixed.name == name:
            yield NamedHost(fixed, place)
        elif not name.startswith("*."):
            yield NamedHost(FixedHost(name), place)
    for index, use in enumerate(manifest.secrets):
        if isinstance(use.way, AsToken) and (server := fixed_host(use.way.token_url)):
            yield NamedHost(server, ("secrets", index, "inject", "oauth2_client_credentials", "token_url"))


def fixed_host(url: str) -> FixedHost | None:
    """The host that a URL, or the fixed beginning of one, names."""
    found_host = _FIXED.match(url)
    if found_host is None:
        return None
    scheme, name, port = found_host.groups()
    return FixedHost(name.lower(), scheme, int(port or _DEFAULT_PORTS[scheme]))


def _problems(manifest: Manifest, doubts: dict[FixedHost, UpstreamDoubt]) -> Iterator[FoundProblem]:
    told = [(place, doubts[host]) for host, place in _hosts(manifest) if host in doubts]
    tree = read_file(Path(manifest.file), Report(manifest.file)) if told else None
    for place, doubt in told:
        line = tree.line_at(place) if tree else 0
        field = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place).removeprefix(".")
        message = f"{_LAST_INDEX.sub('', field)}: {doubt.message}."
        said = FileProblem(manifest.file, line, field, message, doubt.mend)
        yield found(said, is_warning=doubt.weight == "warning", is_unreached=doubt.weight == "unreached")


async def look_at_hosts(settings: Settings, hosts: Set[FixedHost]) -> dict[FixedHost, UpstreamDoubt]:
    """Look at each of these hosts, at once. Hosts without a fault are not in the answer."""
    doubts: dict[FixedHost, UpstreamDoubt] = {}
    looked_at: set[FixedHost] = set()
    places = trio.CapacityLimiter(MAX_AT_ONCE)

    async def look_at(host: FixedHost) -> None:
        doubt = await trio.to_thread.run_sync(
            partial(doubt_of, host, settings), limiter=places, abandon_on_cancel=True
        )  # fmt: skip
        looked_at.add(host)
        if doubt is not None:
            doubts[host] = doubt

    with trio.move_on_after(UPSTREAM_SECONDS):
        async with trio.open_nursery() as nursery:
            for host in sorted(hosts, key=str):
                nursery.start_soon(look_at, host)
    return {host: _late(host) for host in hosts - looked_at} | doubts


def _late(host: FixedHost) -> UpstreamDoubt:
    message = f"{host.name} was not looked at within {UPSTREAM_SECONDS:g} s"
    return UpstreamDoubt(message, "Look at the name server and at the hosts before it, and check again.", "unreached")


def doubt_of(host: FixedHost, settings: Settings) -> UpstreamDoubt | None:
    """Look one host up, and connect where its port is known. Blocks."""
    networks = networks_for(settings.egress.networks, [host.name])
    try:
        infos = socket.getaddrinfo(host.name, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        unknown = UpstreamDoubt(f"{host.name} can't be resolved", "Correct the name or its DNS record.", "warning")
        return unknown if host.port else None
    addresses = list(dict.fromkeys(str(info[4][0]) for info in infos))
    named = networks_of(host.name, networks)
    port = host.port or next((one.ports[0] for one in named if one.ports), _DEFAULT_PORTS["https"])
    try:
        reach = reach_of(host.name, port, addresses, networks, own_servers(settings))
    except ReachRefused as error:
        return _refused(host.name, addresses, named, str(error))
    files = {one.planned.tls: one.tls for one in settings.egress.networks}
    return _try(host, reach, files.get(reach.network.tls) if reach.network else None) if host.port else None


def _refused(name: str, addresses: list[str], named: list[PlanNetwork], said: str) -> UpstreamDoubt:
    leads = f"{name} leads to {', '.join(addresses)}"
    if named:
        return UpstreamDoubt(f"{leads}: {said}", f"Correct [[egress.networks]] or the DNS record ({PRIVATE_NETWORKS}).")
    hidden = [hidden_in(address) for address in addresses]
    if any(one is None or any(one in never for never in NEVER) for one in hidden):
        return UpstreamDoubt(f"{leads}, which no network may hold", "Correct the name or its DNS record.")
    return UpstreamDoubt(
        f"{leads}: add it to [[egress.networks]]", f"Calls will be refused until then ({PRIVATE_NETWORKS})."
    )


def _try(host: FixedHost, reach: Reach, files: NetworkTls | None) -> UpstreamDoubt | None:
    """Connect to the addresses in turn, and agree on TLS with the first that answers."""
    assert host.port is not None
    where = f"{host.name} at port {host.port}"
    context: ssl.SSLContext | None = None
    if host.scheme == "https":
        try:
            context = client_context(files.ca_file if files else None)
            show_certificate(context, files)
        except OSError:
            name = reach.network.name if reach.network else ""
            mend = "Correct ca_file and client_certificate of that network."
            return UpstreamDoubt(f"the certificate files of the private network {name} can't be used", mend)
    why = "can't be connected to"
    for address in reach.addresses[:MAX_ADDRESSES]:
        try:
            with socket.create_connection((address, host.port), ANSWER_SECONDS) as stream:
                if context is not None:
                    context.wrap_socket(stream, server_hostname=host.name).close()
            return None
        except ssl.SSLCertVerificationError as error:
            why = f"has a certificate that {problem_of(error)}"
        except ssl.SSLError:
            why = "agrees on no TLS"
        except OSError:
            continue
    return UpstreamDoubt(f"{where} {why}", "Start it, or correct the manifest.", "unreached")
