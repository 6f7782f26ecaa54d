"""Looking at the files of a configuration as a start would, and telling every problem instead of starting.

Manifests, modules, policy and secrets are read by the code that a front reads them with. Guarantees that nothing
is written and nothing stays behind. Stricter than a start in what would only show at the first call: a module that is
not trusted, a secret that is not there.
"""

import socket
from collections.abc import Sequence
from pathlib import Path

import trio

from frontend.actions.hosts import host_doubts
from frontend.actions.modules import module_doubts, module_files, module_problems
from frontend.actions.registry import load_manifests
from frontend.actions.roots import root_problems
from frontend.actions.trust import load_trusted
from frontend.actions.unfilled import unfilled_doubts
from frontend.egress.rulefile import learned_of
from frontend.files.problems import FileProblem, Report
from frontend.manifests.manifest import Manifest
from frontend.manifests.reading import read_file
from frontend.policy.acl import read_policy
from frontend.policy.embedded import EmbeddedPolicy
from frontend.policy.engine import PolicyRefused
from frontend.policy.opa.wire import documents_of
from frontend.policy.pointer_doubts import pointer_doubts
from frontend.policy.problems import policy_problems
from frontend.secrets.files import SecretFile, SecretsUnavailable
from frontend.webhooks.endpoints import key_in
from ipc.channel.blocking import ChannelClosed
from ipc.channel.framing import FrameError
from ipc.channel.nonblocking import TrioChannel
from ipc.channel.protocol_states import ProtocolError
from ipc.keys.secret_values import MIN_SECRET_CHARACTERS
from ipc.limits import MAX_CONTROL_FRAME
from ipc.messages.checking import FoundProblem
from ipc.messages.modules import LoadModules, ModulesLoaded
from ipc.process.private_files import PrivateFileError
from ipc.protocols.checking import FROM_MODULE_CHECKER
from ipc.settings import Settings

MODULE_SECONDS = 300.0


def found(
    problem: FileProblem, *setting: str | int, is_warning: bool = False, is_unreached: bool = False
) -> FoundProblem:  # fmt: skip
    """Make the message for a problem."""
    return FoundProblem(
        problem.file, problem.line, problem.field, problem.message, problem.mend, setting, is_warning, is_unreached
    )  # fmt: skip


async def look_at_actions(
    settings: Settings, channel: "TrioChannel[ModulesLoaded]", *, with_secrets: bool
) -> tuple[list[FoundProblem], int]:
    """Manifests with their modules and their secrets. Returns the problems, and how many actions there are."""
    folder = Path(settings.manifests_dir)
    manifests, problems = load_manifests(folder, has_proxy=settings.egress_proxy_url is not None)
    trusted, more = load_trusted(folder)
    modules_dir = Path(settings.modules_dir or folder / "modules")
    told = [found(problem) for problem in (*problems, *more, *root_problems(manifests, settings.files_folder))]
    try:
        with trio.fail_after(MODULE_SECONDS):
            await channel.send(LoadModules("check", module_files(manifests, modules_dir)))
            verdicts = (await channel.receive()).verdicts
    except (trio.TooSlowError, ChannelClosed, FrameError, ProtocolError, OSError) as error:
        what = f"modules could not be looked at: {type(error).__name__}."
        told.append(found(FileProblem(str(modules_dir), 0, "", what, "Try again; look at the log of this command.")))
    else:
        told += map(found, module_problems(manifests, verdicts, modules_dir))
        told += map(found, module_doubts(manifests, verdicts, modules_dir, trusted))
    told += map(found, host_doubts(manifests, learned_of(settings)))
    told += map(found, unfilled_doubts(manifests))
    if with_secrets:
        told += _look_at_secrets(settings, manifests)
    return told, len(manifests)


def module_channel(sock: socket.socket) -> "TrioChannel[ModulesLoaded]":
    """The channel to a module checker (workers/check.py)."""
    return TrioChannel(
        sock, ModulesLoaded, table=FROM_MODULE_CHECKER, cap_in=MAX_CONTROL_FRAME,
        cap_out=MAX_CONTROL_FRAME,
    )  # fmt: skip


async def look_at_policy(policy_dir: str, engine: EmbeddedPolicy) -> tuple[list[FoundProblem], str, str | None]:
    """The policy as a candidate of `engine`, which runs.

    Returns the problems and warnings, its version where it was read, and why its decisions are not remembered if that
    is so. Stricter than a start: what a reload would only log is a problem where it is never meant.
    """
    version, told = "", []
    try:
        files = read_policy(policy_dir)
        version = files.data.policy_version
        for is_mistake in (True, False):
            said = [doubt.sentence for doubt in files.doubts if doubt.is_mistake is is_mistake]
            told += [found(one, is_warning=not is_mistake) for one in policy_problems(said, policy_dir)]
        await engine.load(files.sources)
    except PolicyRefused as refused:
        return [*told, *(found(problem) for problem in policy_problems(refused.problems, policy_dir))], version, None
    return told, version, engine.memo_status.reason


def look_at_data(policy_dir: str) -> tuple[list[FoundProblem], str]:
    """The data of a policy whose rules an OPA has. Returns problems and warnings, and its version where it was read."""
    version, told = "", []
    try:
        files = read_policy(policy_dir, has_rules=False)
        version = files.data.policy_version
        said = policy_problems([doubt.sentence for doubt in files.doubts], policy_dir)
        told = [found(one, is_warning=True) for one in said]
        documents_of(files.sources.data)
    except PolicyRefused as refused:
        told += [found(problem) for problem in policy_problems(refused.problems, policy_dir)]
    return told, version


def look_at_pointers(settings: Settings, *, has_looked: bool) -> list[FoundProblem]:
    """Warnings of values that the policy names and no action offers; none as long as manifests or policy can't be read.
    `has_looked`: another step reports the problems of manifests."""
    manifests, problems = load_manifests(Path(settings.manifests_dir), has_proxy=True)
    if problems:
        return [] if has_looked else [found(problem) for problem in problems]
    try:
        files = read_policy(settings.policy_dir, has_rules=settings.opa_url is None)
    except PolicyRefused:
        return []
    said = pointer_doubts(files, {one.action_id: one.policy_input for one in manifests})
    return [found(one, is_warning=True) for one in policy_problems(said, settings.policy_dir)]


def look_at_webhooks(settings: Settings) -> list[FoundProblem]:
    """Files that hold webhooks' secrets; those of disabled endpoints are not used, and not looked at."""
    told = []
    for index, row in enumerate(settings.webhooks):
        if row.secret_file is None or row.disable:
            continue
        try:
            key_in(Path(row.secret_file))
        except PrivateFileError as error:
            setting = f"webhooks[{index}].secret_file"
            said = FileProblem("", 0, setting, f"{setting}: {error}", "")
            told.append(found(said, "webhooks", index, "secret_file"))
    return told


def _look_at_secrets(settings: Settings, manifests: Sequence[Manifest]) -> list[FoundProblem]:
    """Secrets that are required and missing, or too short to be sent. Values are not looked at but for their length."""
    try:
        names, short = SecretFile(settings.secrets).names(), SecretFile(settings.secrets).unsearchable()
    except SecretsUnavailable as error:
        said = FileProblem("", 0, "secrets.file", f"secrets.file: {error}.", "Correct the file, its owner or its mode.")
        return [found(said, "secrets", "file")]
    told = []
    shown = settings.egress.proxy_secret
    if shown is not None and shown not in names:
        message = f"egress.proxy_secret: the secret {shown} is not in secrets.file."
        said = FileProblem("", 0, "egress.proxy_secret", message, "Add it there: user:password.")
        told.append(found(said, "egress", "proxy_secret"))
    for manifest in manifests:
        wanted = [
            (index, use)
            for index, use in enumerate(manifest.secrets)
            if (use.required and use.name not in names) or (use.way is not None and use.name in short)
        ]
        tree = read_file(Path(manifest.file), Report(manifest.file)) if wanted else None
        for index, use in wanted:
            line = tree.line_at(("secrets", index, "name")) if tree else 0
            if use.name in short:
                message = f"the secret {use.name} is shorter than {MIN_SECRET_CHARACTERS} characters without spaces."
                mend = "Use a longer one: a shorter one can't be looked for in answers, and is never sent."
            elif settings.secrets.file is None:
                message = f"the secret {use.name} is required, and the configuration names no secrets file."
                mend = "Set file in [secrets], or write required: false."
            else:
                message = f"the secret {use.name} is required, and {settings.secrets.file} does not have it."
                mend = "Add it there, or write required: false."
            told.append(found(FileProblem(manifest.file, line, f"secrets[{index}].name", message, mend)))
    return told
