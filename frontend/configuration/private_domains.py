"""Allowed domains that lead to private addresses: `gateway check --connect` warns, since calls would be refused.

Looks names up as this host would, all within LOOKUP_SECONDS, and connects to nothing. A name that can't be looked up
now says nothing about a later call, so it makes no warning.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

import trio

from frontend.actions.registry import load_manifests
from frontend.configuration.inspection import found
from frontend.files.problems import FileProblem, Report
from frontend.manifests.manifest import Manifest
from frontend.manifests.reading import read_file
from ipc.channel.checking import FoundProblem
from ipc.network.addresses import is_public
from ipc.settings import Settings

LOOKUP_SECONDS = 20.0
MAX_LOOKUPS = 16
"""At once."""
DIRECT = "direct_allowlist"


async def look_at_domains(settings: Settings) -> list[FoundProblem]:
    """A warning for each domain of a manifest that leads to no public address."""
    manifests, _ = load_manifests(Path(settings.manifests_dir), has_proxy=settings.egress_proxy_url is not None)
    direct = [manifest for manifest in manifests if manifest.egress.profile == DIRECT]
    names = {name for manifest in direct for name in manifest.egress.allowed_domains if not name.startswith("*.")}
    private = await _private_addresses(names - settings.egress.unsafe_resolve.keys())
    return [found(problem, is_warning=True) for manifest in direct for problem in _warnings(manifest, private)]


def _warnings(manifest: Manifest, private: dict[str, str]) -> Iterator[FileProblem]:
    named = [(index, name) for index, name in enumerate(manifest.egress.allowed_domains) if name in private]
    tree = read_file(Path(manifest.file), Report(manifest.file)) if named else None
    for index, name in named:
        line = tree.line_at(("egress", "allowed_domains", index)) if tree else 0
        message = f"egress.allowed_domains: {name} leads to the private address {private[name]}: calls will be refused."
        mend = "Correct the name or its DNS record, or use proxy_allowlist with a proxy that may reach it."
        yield FileProblem(manifest.file, line, f"egress.allowed_domains[{index}]", message, mend)


async def _private_addresses(names: Iterable[str]) -> dict[str, str]:
    """The first address of each name that has addresses, none of which is public."""
    private: dict[str, str] = {}
    places = trio.CapacityLimiter(MAX_LOOKUPS)

    async def look_up(name: str) -> None:
        async with places:
            try:
                infos = await trio.socket.getaddrinfo(name, None, type=trio.socket.SOCK_STREAM)
            except (OSError, UnicodeError):
                return
        addresses = [str(info[4][0]) for info in infos]
        if addresses and not any(map(is_public, addresses)):
            private[name] = addresses[0]

    with trio.move_on_after(LOOKUP_SECONDS):
        async with trio.open_nursery() as nursery:
            for name in sorted(names):
                nursery.start_soon(look_up, name)
    return private
