"""Where the fixed hosts of manifests lead, and whether they answer: `gateway check --connect` for actions that go out
directly.

Each name is looked up as a worker would and judged by the same rule; where a template or the section `mcp` names host
and port it is connected to, and TLS is agreed on. Sends no request. All within UPSTREAM_SECONDS. A name that can't be
looked up now says little about a later call: a warning where one of them names it, else nothing.
"""

import re
import socket
import ssl
from collections.abc import Iterable, Iterator
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
from ipc.channel.checking import FoundProblem
from ipc.network.name_addresses import MAX_ADDRESSES
from ipc.network.own_servers import own_servers
from ipc.network.reach import NEVER, Reach, ReachRefused, hidden_in, networks_for, networks_of, reach_of
from ipc.network.tls import client_context, problem_of, show_certificate
from ipc.networks import NetworkTls, PlanNetwork
from ipc.settings import Settings

UPSTREAM_SECONDS = 60.0
ANSWER_SECONDS = 5.0
"""For one address."""
MAX_AT_ONCE = 16
PRIVATE_NETWORKS = 'docs/egress.md, "Private networks"'
_FIXED = re.compile(r"(https?)://([a-z0-9.-]+)(?::([0-9]{1,5}))?(?=[/?{]|\Z)")
_DEFAULT_PORTS = {"http": 80, "https": 443}


class FixedHost(NamedTuple):
    """A name of a manifest. `scheme` and `port` where its template or section `mcp` names them."""

    name: str
    scheme: str | None = None
    port: int | None = None


class UpstreamDoubt(NamedTuple):
    """A fault of a host, and the mend. `weight`: problem, warning, or unreached, since it may answer later."""

    message: str
    mend: str
    weight: str = "problem"


async def look_at_upstreams(settings: Settings) -> list[FoundProblem]:
    """A problem for each domain of a manifest that leads where no call may, or that does not answer."""
    manifests, _ = load_manifests(Path(settings.manifests_dir), has_proxy=settings.egress_proxy_url is not None)
    direct = [one for one in manifests if one.egress.profile == DIRECT]
    hosts = {host for one in direct for host in _hosts(one) if host.name not in settings.egress.unsafe_resolve}
    doubts = await _look(settings, hosts)
    return [problem for manifest in direct for problem in _problems(manifest, doubts)]


def _hosts(manifest: Manifest) -> Iterator[FixedHost]:
    """The names of a manifest without a wildcard, in the order of its list."""
    urls = [manifest.template and manifest.template.url_template, manifest.mcp and manifest.mcp.url]
    fixed = next((_FIXED.match(url) for url in urls if url), None)
    for name in manifest.egress.allowed_domains:
        if fixed is not None and fixed[2] == name:
            yield FixedHost(name, fixed[1], int(fixed[3] or _DEFAULT_PORTS[fixed[1]]))
        elif not name.startswith("*."):
            yield FixedHost(name)


def _problems(manifest: Manifest, doubts: dict[FixedHost, UpstreamDoubt]) -> Iterator[FoundProblem]:
    told = [(host, doubts[host]) for host in _hosts(manifest) if host in doubts]
    tree = read_file(Path(manifest.file), Report(manifest.file)) if told else None
    for host, doubt in told:
        index = manifest.egress.allowed_domains.index(host.name)
        line = tree.line_at(("egress", "allowed_domains", index)) if tree else 0
        field = f"egress.allowed_domains[{index}]"
        message = f"egress.allowed_domains: {doubt.message}."
        said = FileProblem(manifest.file, line, field, message, doubt.mend)
        yield found(said, is_warning=doubt.weight == "warning", is_unreached=doubt.weight == "unreached")


async def _look(settings: Settings, hosts: Iterable[FixedHost]) -> dict[FixedHost, UpstreamDoubt]:
    doubts: dict[FixedHost, UpstreamDoubt] = {}
    places = trio.CapacityLimiter(MAX_AT_ONCE)

    async def look_at(host: FixedHost) -> None:
        doubt = await trio.to_thread.run_sync(
            partial(doubt_of, host, settings), limiter=places, abandon_on_cancel=True
        )  # fmt: skip
        if doubt is not None:
            doubts[host] = doubt

    with trio.move_on_after(UPSTREAM_SECONDS):
        async with trio.open_nursery() as nursery:
            for host in sorted(hosts, key=str):
                nursery.start_soon(look_at, host)
    return doubts


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
