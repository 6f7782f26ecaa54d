"""Where the `jwks_url` of issuers leads, and whether a server answers there: `gateway check --connect`."""

from frontend.configuration.inspection import found
from frontend.configuration.upstream_checks import PRIVATE_NETWORKS, UpstreamDoubt, fixed_host, look_at_hosts
from frontend.files.problems import FileProblem
from ipc.messages.checking import FoundProblem
from ipc.settings import Settings

_START = "Start the server there, or correct the address."


async def look_at_issuers(settings: Settings) -> list[FoundProblem]:
    """A problem for each issuer whose address leads where the broker does not go, or that does not answer."""
    rows = enumerate(settings.identity.issuers)
    hosts = {index: host for index, row in rows if row.jwks_url is not None and (host := fixed_host(row.jwks_url))}
    asked = {one for one in hosts.values() if one.name not in settings.egress.unsafe_resolve}
    doubts = await look_at_hosts(settings, asked)
    return [_problem(index, doubts[host]) for index, host in hosts.items() if host in doubts]


def _problem(index: int, doubt: UpstreamDoubt) -> FoundProblem:
    is_wrong = doubt.weight == "problem"
    mend = f"Correct the address, or [[egress.networks]] ({PRIVATE_NETWORKS})." if is_wrong else _START
    said = FileProblem("", 0, "", f"identity.issuers[{index}].jwks_url: {doubt.message}.", mend)
    return found(said, "identity", "issuers", index, "jwks_url", is_unreached=not is_wrong)
