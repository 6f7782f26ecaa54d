"""`gateway check`: everything that is wrong with a configuration, by the processes that would use it.

The supervisor reads the configuration file and looks at folders itself. Manifests, modules, policy and secrets are
read by a checking front, which has a policy process and a module checker beside it, keys by a program of the notary:
what reads them when a gateway starts, or its code. Guarantees that nothing is started to serve, and that nothing stays
behind.
"""

import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from ipc.backends.servers import BACKENDS
from ipc.channel.blocking import BlockingChannel, ChannelClosed
from ipc.channel.framing import FrameError
from ipc.channel.protocol_states import ProtocolError
from ipc.keys.key_reports import BackendProblem
from ipc.limits import MAX_CONTROL_FRAME
from ipc.messages.checking import (
    MAX_PROBLEM_FRAME,
    MAX_PROBLEMS,
    CheckerToSupervisor,
    CheckFiles,
    FilesChecked,
    FoundProblem,
)
from ipc.process.exits import Exit
from ipc.protocols.checking import CHECKER_TO_SUPERVISOR
from ipc.settings import Settings
from supervisor.children.helpers import Helpers
from supervisor.commands.rotation import key_problems
from supervisor.dev.keys import run_key_program
from supervisor.refusal import Refused
from supervisor.settings.checks.ceilings import connection_warnings
from supervisor.settings.checks.places import place_problems
from supervisor.settings.config import Loaded
from supervisor.settings.document import Document
from supervisor.settings.problems import Problem

CHECK_SECONDS = 180.0
"""Compiling large modules takes most of it; a policy has ten seconds."""


class Checked(msgspec.Struct, frozen=True):
    """The result of a check. `actions` and the fields about the policy are for the sentence that there are no
    problems."""

    problems: tuple[Problem, ...]
    actions: int = 0
    policy_version: str = ""
    policy_not_remembered: str | None = None
    warnings: tuple[Problem, ...] = ()
    """Findings that may be intended; they refuse nothing."""
    unreached: tuple[Problem, ...] = ()
    """Backends that do not answer now."""


def check_configuration(loaded: Loaded, environ: Mapping[str, str], *, connects: bool = False) -> Checked:
    """Judge all that can be judged, even where other parts are wrong. Raises Refused when the check itself fails.

    `connects`: ask the backends that the configuration names, too.
    """
    settings = loaded.judged
    if settings is None:
        return Checked(loaded.problems)
    problems = [*loaded.problems, *place_problems(loaded)]
    lease = settings.lease_signing_key_path or str(Path(settings.state_dir) / "keys" / "lease.pem")
    final = msgspec.structs.replace(settings, lease_signing_key_path=lease, operators=())
    for name, sentence in key_problems(final, _keys(loaded, final)):
        problems.append(loaded.document.problem((name,), f"{name}: {sentence}", ""))
    parts = (*_parts(loaded, final), *(("connect",) if connects else ()))
    looked = _look(CheckFiles(final, parts), loaded.document, environ)
    unreached = (*looked.unreached, *(_untried(final, loaded.document) if connects else ()))
    warnings = (*connection_warnings(loaded), *looked.warnings)
    return replace(looked, problems=(*problems, *looked.problems), warnings=warnings, unreached=unreached)


def _untried(settings: Settings, document: Document) -> list[Problem]:
    """Return the problems of the notary's servers; a program that may connect to them tries each. Raises Refused."""
    if not any(one.form is not None and one.url(settings) is not None for one in BACKENDS):
        return []
    failing, given = "the backends could not be tried", msgspec.json.encode(settings).decode()
    done = run_key_program("notary.programs.try_backends", [], failing, given)
    if done.returncode != 0:
        raise Refused(Exit.FAILED, f"{failing}: {(done.stderr.strip().splitlines() or ['no reason given'])[-1]}")
    told = msgspec.json.decode(done.stdout, type=list[BackendProblem])
    return [document.problem(tuple(one.setting.split(".")), one.sentence, "") for one in told]


def check_policy(folder: str, environ: Mapping[str, str], manifests: str | None = None) -> Checked:
    """A policy folder alone, or beside the manifests of a folder. Raises Refused when the check itself fails."""
    settings = Settings(state_dir="", public_base_url="", policy_dir=folder)
    if manifests is None:
        return _look(CheckFiles(settings, ("policy",)), Document(), environ)
    settings = msgspec.structs.replace(settings, manifests_dir=manifests)
    return _look(CheckFiles(settings, ("policy", "pointers")), Document(), environ)


def check_actions(settings: Settings, environ: Mapping[str, str]) -> Checked:
    """Manifests and modules alone. Raises Refused when the check itself fails."""
    return _look(CheckFiles(settings, ("actions",)), Document(), environ)


def _parts(loaded: Loaded, settings: Settings) -> tuple[str, ...]:
    """Return the parts to check: files that the configuration names, without files that a start would create."""
    parts = []
    if loaded.is_judged("manifests_dir") and loaded.is_judged("modules_dir"):
        parts.append("actions")
        # A dev gateway makes a file of example secrets when none is named.
        if loaded.is_judged("secrets") and (settings.secrets.file is not None or not settings.dev_mode):
            parts.append("secrets")
    if loaded.is_judged("policy_dir"):
        parts.append("policy")
        parts += ["pointers"] if "actions" in parts else []
    if any(row.secret_file is not None for row in settings.webhooks):
        parts.append("webhooks")  # a row keeps its place with what could be read of it
    return tuple(parts)


def _keys(loaded: Loaded, settings: Settings) -> list[str]:
    """Purposes of the keys that may be looked at; a dev gateway makes its own."""
    if settings.dev_mode:
        return []
    named = {name: getattr(settings, name) is not None and loaded.is_judged(name) for name in _KEYS}
    purposes = []
    if loaded.is_judged("state_dir") and loaded.is_judged("lease_signing_key_path"):
        purposes.append("lease")
    if named["grant_signing_key_path"]:
        purposes.append("grant")
    if named["receipt_signing_key_path"] and named["receipt_keys_jwks_path"]:
        purposes.append("receipt")
    if named["receipt_signing_key_path"] and loaded.is_judged("state_dir"):
        purposes.append("checkpoint")
    return purposes


_KEYS = ("grant_signing_key_path", "receipt_signing_key_path", "receipt_keys_jwks_path")


def _look(request: CheckFiles, document: Document, environ: Mapping[str, str]) -> Checked:
    """Have a checking front look, beside a policy process and a module checker."""
    ours, checkers = socket.socketpair()
    policy_front, policys = socket.socketpair()
    module_front, modules = socket.socketpair()
    cache = ("--cache", str(Path(request.settings.state_dir) / "modules-cache")) if request.settings.state_dir else ()
    with ours, policy_front, module_front, Helpers(environ, CHECK_SECONDS) as helpers, policys, modules, checkers:
        helpers.start("workers.rego.main", "--channel-fd", str(policys.fileno()), fds=(policys.fileno(),))
        helpers.start("workers.check", "--channel-fd", str(modules.fileno()), *cache, fds=(modules.fileno(),))
        helpers.start("frontend.configuration.check", "--control-fd", str(checkers.fileno()), fds=(checkers.fileno(),))
        # Each end is now in one process alone: who dies is missed by the other.
        for theirs in (policys, modules, checkers):
            theirs.close()
        union: Any = CheckerToSupervisor
        channel: BlockingChannel[FoundProblem | FilesChecked] = BlockingChannel(
            ours, union, table=CHECKER_TO_SUPERVISOR, cap_in=MAX_PROBLEM_FRAME, cap_out=MAX_CONTROL_FRAME
        )
        try:
            channel.send(request, (policy_front.fileno(), module_front.fileno()))
            policy_front.close()
            module_front.close()
            return _heard(channel, ours, helpers, document)
        except (ChannelClosed, FrameError, ProtocolError, ConnectionError, TimeoutError) as error:
            what = "manifests, policy and secrets could not be looked at"
            raise Refused(Exit.FAILED, f"{what}: {type(error).__name__}.") from None


def _heard(
    channel: "BlockingChannel[FoundProblem | FilesChecked]", sock: socket.socket, helpers: Helpers, document: Document
) -> Checked:
    problems: list[Problem] = []
    warnings: list[Problem] = []
    unreached: list[Problem] = []
    while len(problems) + len(warnings) + len(unreached) <= MAX_PROBLEMS:
        sock.settimeout(helpers.left)
        message = channel.receive()
        if isinstance(message, FilesChecked):
            return Checked(
                tuple(problems), message.actions, message.policy_version, message.policy_not_remembered,
                tuple(warnings), tuple(unreached),
            )  # fmt: skip
        if message.setting:
            placed = document.problem(message.setting, message.message, message.mend)
            (unreached if message.is_unreached else problems).append(placed)
        else:
            told = Problem(message.file, message.line, message.message, 0, message.field, message.mend)
            (warnings if message.is_warning else unreached if message.is_unreached else problems).append(told)
    raise ProtocolError("too many problems")
