"""The question for `gateway policy explain`: from a file, from a call that could be made, or from an earlier call.

A program of the front makes the question for a call from configuration and manifests; a program of the notary reads an
earlier call from the ledger. A running gateway is neither asked nor changed.
"""

import argparse
import os
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from ipc.messages.checking import Asking, ExplainedInput
from ipc.process.exits import Exit
from ipc.settings import Settings
from ipc.texts.canonical import MAX_SAFE_INTEGER
from supervisor.children.helpers import Helpers
from supervisor.commands.named import add_gateway, refuse_other_folders
from supervisor.commands.rotation import load_named
from supervisor.dev.policy import with_own_policy
from supervisor.refusal import Refused
from supervisor.settings.loading import load_for_production
from supervisor.settings.problems import report
from supervisor.settings.sections.ledgers import ledger_arguments

ASKING_SECONDS = 60.0
_OPA_DECIDES = "an OPA decides (opa_url): ask that one, for instance with opa eval. --policy DIR explains a folder."
MAX_REQUEST = 1_048_576
"""Bytes of the largest request body (docs/contract.md, "Limits")."""


class ExplainCommand(msgspec.Struct, frozen=True):
    """Arguments and descriptors for the front's part; `folder` of the policy where the question's gateway has one."""

    arguments: list[str]
    folder: str | None = None
    fds: tuple[int, ...] = ()


class _Called(msgspec.Struct, frozen=True):
    """The fields of an audit event that describe a call."""

    event_type: str
    principal: str | None = None
    action_id: str | None = None
    action_version: str | None = None
    request_hash: str | None = None
    budgets_before: dict[str, Any] | None = None
    decision: str | None = None
    policy_rule: str | None = None
    policy_version: str | None = None
    timestamp: str = ""


def add_options(parser: argparse.ArgumentParser, default_folder: str) -> None:
    """Put the three ways to ask among the options of `explain`."""
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--input", type=Path, metavar="FILE", help="the input document (JSON)")
    what.add_argument("--principal", metavar="NAME", help="a call of this principal; with --action")
    what.add_argument("--trace", metavar="ID", help="an earlier call, by its trace id")
    parser.add_argument("--action", metavar="ACTION", help="the action that the principal would call")
    parser.add_argument("--request", type=Path, metavar="FILE", help="body of the call (JSON; default {})")
    parser.add_argument(
        "--calls-remaining",
        type=_calls,
        metavar="N",
        help="calls left in the budget; default: a lease without a budget",
    )
    parser.add_argument("--policy", type=Path, metavar="DIR", help=f"policy folder (default {default_folder})")
    add_gateway(parser)


def _calls(text: str) -> int:
    """A count of calls that a lease may have. Raises argparse.ArgumentTypeError."""
    if not re.fullmatch("[0-9]{1,16}", text) or int(text) > MAX_SAFE_INTEGER:
        raise argparse.ArgumentTypeError(f"must be a whole number from 0 to {MAX_SAFE_INTEGER}")
    return int(text)


@contextmanager
def question(options: argparse.Namespace, environ: Mapping[str, str]) -> Iterator[ExplainCommand | None]:
    """The question that the options ask, as long as the block lasts; None when the configuration does not hold, which
    has been printed. Raises Refused."""
    if options.policy is not None and (options.config is not None or options.state_dir is not None):
        raise Refused(Exit.USAGE, "--policy names the folder, and so does the configuration: give one of them.")
    if (options.action is None) is not (options.principal is None):
        raise Refused(Exit.USAGE, "--principal and --action go together.")
    if options.input is not None:
        arguments = ["--input", str(options.input.absolute())]
        is_named = options.config is not None or options.state_dir is not None
        folder = _policy_dir(options, environ) if is_named else None
        yield ExplainCommand(arguments, folder) if folder or not is_named else None
        return
    settings = _settings(options, environ)
    if settings is None:
        yield None
    elif settings.opa_url is not None:
        raise Refused(Exit.CONFIG, _OPA_DECIDES)
    else:
        with Helpers(environ, ASKING_SECONDS) as helpers, tempfile.TemporaryFile() as file:
            asked = _asked(options, settings, helpers)
            file.write(msgspec.json.encode(asked))
            file.seek(0)
            yield ExplainCommand(["--asked-fd", str(file.fileno())], settings.policy_dir, (file.fileno(),))


def _policy_dir(options: argparse.Namespace, environ: Mapping[str, str]) -> str | None:
    """Return the policy folder of a configuration, even if other parts of the configuration are wrong."""
    if options.state_dir is not None:
        settings = _settings(options, environ)
        return None if settings is None else settings.policy_dir
    loaded = load_for_production(options.config, environ)
    if loaded.judged is None or not loaded.is_judged("policy_dir"):
        print(report(loaded.problems), end="", file=sys.stderr)
        return None
    if loaded.judged.opa_url is not None:
        raise Refused(Exit.CONFIG, _OPA_DECIDES)
    return loaded.judged.policy_dir


def _settings(options: argparse.Namespace, environ: Mapping[str, str]) -> Settings | None:
    loaded = load_named(options.config, options.state_dir, environ)
    if loaded.settings is None:
        print(report(loaded.problems), end="", file=sys.stderr)
        return None
    refuse_other_folders(options, loaded.settings)
    is_own = options.state_dir is not None and loaded.document.is_default(("policy_dir",))
    return with_own_policy(loaded.settings) if is_own else loaded.settings


def _asked(options: argparse.Namespace, settings: Settings, helpers: Helpers) -> ExplainedInput:
    # SECURITY: who only asks is not handed what operators sign in with.
    settings = msgspec.structs.replace(settings, operators=())
    asking = Asking(settings, options.action, options.principal, _request(options.request), options.calls_remaining)
    if options.trace is None:
        return _made(asking, helpers)
    call = _call_of(options.trace, settings, helpers)
    left = (call.budgets_before or {}).get("calls_remaining")
    asking = Asking(
        settings, call.action_id or "", call.principal or "", asking.request, left, call.request_hash
    )  # fmt: skip
    made = _made(asking, helpers)
    version = made.document.get("action_version", call.action_version)
    then = f"At {call.timestamp} the answer was {call.decision}, rule {call.policy_rule}, policy {call.policy_version}."
    told = [then, "What follows from the files of today is shown above."]
    if version != call.action_version:
        told.append(f"The action had version {call.action_version} then, and has {version} now.")
    return msgspec.structs.replace(made, assumed=(*told, *made.assumed))


def _request(path: Path | None) -> bytes | None:
    if path is None:
        return None
    try:
        with path.open("rb") as file:
            body = file.read(MAX_REQUEST + 1)
    except OSError as error:
        raise Refused(Exit.USAGE, f"{path} cannot be read: {error.strerror}.") from None
    if len(body) > MAX_REQUEST:
        raise Refused(Exit.USAGE, f"{path} is larger than {MAX_REQUEST} bytes, which no request is.")
    return body


def _call_of(trace_id: str, settings: Settings, helpers: Helpers) -> _Called:
    """The decision about the call of a trace: its first event. Raises Refused."""
    failing, ledger = "the ledger could not be read", settings.ledger.url or settings.ledger_file
    told = _output(helpers, "notary.programs.trace", (trace_id, *ledger_arguments(settings)), (), failing)
    calls = [one for one in msgspec.json.decode(told, type=list[_Called]) if one.event_type == "ActionCall"]
    if not calls:
        raise Refused(Exit.CONFIG, f"{ledger} has no call with the trace {trace_id!a}.")
    if calls[0].principal is None or calls[0].action_id is None:
        raise Refused(Exit.CONFIG, f"the call of {trace_id!a} was refused before its caller and action were known.")
    return calls[0]


def _made(asking: Asking, helpers: Helpers) -> ExplainedInput:
    with tempfile.TemporaryFile() as file:
        file.write(msgspec.json.encode(asking))
        file.seek(0)
        fd = file.fileno()
        what = "the question could not be made"
        told = _output(helpers, "frontend.configuration.asking", ("--asking-fd", str(fd)), (fd,), what)
    return msgspec.json.decode(told, type=ExplainedInput)


def _output(helpers: Helpers, module: str, arguments: tuple[str, ...], fds: tuple[int, ...], what: str) -> bytes:
    """Run a program and return its output. Raises Refused if it fails."""
    with tempfile.TemporaryFile() as file:
        printed: BinaryIO = file
        code = helpers.wait(helpers.start(module, *arguments, fds=fds, stdout=printed.fileno()))
        if code != Exit.OK:
            known = code in {Exit.CONFIG, Exit.UNAVAILABLE}
            raise Refused(Exit(code) if known else Exit.FAILED, f"{what}.")
        file.seek(0)
        return os.read(file.fileno(), os.fstat(file.fileno()).st_size)
