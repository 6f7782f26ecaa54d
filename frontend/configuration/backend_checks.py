"""Whether what a configuration depends on answers now: what `gateway check --connect` tries.

Asks each backend of the front once, as a front would, and says a problem at the setting that names it. Sends nothing
that changes anything.
"""

from frontend.configuration.inspection import found
from frontend.egress.proxy import ProxyDown, asker, show
from frontend.files.problems import FileProblem
from frontend.secrets.files import SecretFile, SecretMissing, SecretsUnavailable
from ipc.messages.checking import FoundProblem
from ipc.plan import SecretUse
from ipc.process.private_files import PrivateFileError
from ipc.settings import Settings

_START = "Start it, or correct the setting."


async def look_at_backends(settings: Settings) -> list[FoundProblem]:
    """The policy engine, where it is an OPA, and the egress proxy, where there is one."""
    told = []
    problem = await _opa_problem(settings)
    if problem is not None:
        told.append(_at("opa_url", problem, "Start OPA, or correct the setting."))
    try:
        ask_proxy = asker(settings.egress_proxy_url, authorities=settings.egress.proxy_ca_file)
    except ValueError as error:
        said = FileProblem("", 0, "egress.proxy_ca_file", str(error), "Name a file of certificates in PEM.")
        return [*told, found(said, "egress", "proxy_ca_file")]
    if ask_proxy is not None:
        try:
            await ask_proxy()
        except ProxyDown as error:
            told.append(_at("egress_proxy_url", f"the proxy does not answer: {error}", _START))
        else:
            told += await _look_at_credentials(settings)
    return told


async def _look_at_credentials(settings: Settings) -> list[FoundProblem]:
    """Show the credentials to the proxy as a worker would."""
    url, name = settings.egress_proxy_url, settings.egress.proxy_secret
    if url is None or name is None:
        return []
    try:
        credentials = SecretFile(settings.secrets).for_plan((SecretUse(name),))[name]
        await show(url, credentials, settings.egress.proxy_ca_file)
    except (SecretMissing, SecretsUnavailable):
        return []  # told without asking anybody
    except ProxyDown as error:
        return [_at("egress.proxy_secret", f"the proxy was shown it: {error}", "Correct the secret, or the proxy.")]
    return []


async def _opa_problem(settings: Settings) -> str | None:
    if settings.opa_url is None:
        return None
    from frontend.policy.opa.opening import opa_problem

    try:
        return await opa_problem(settings)
    except PrivateFileError as error:
        return str(error)


def _at(setting: str, sentence: str, mend: str) -> FoundProblem:
    said = f"{setting}: {sentence}{'' if sentence.endswith('.') else '.'}"
    return found(FileProblem("", 0, setting, said, mend), setting, is_unreached=True)
