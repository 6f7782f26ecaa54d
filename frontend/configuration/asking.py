"""`python -m frontend.configuration.asking --asking-fd N --parent PID`: makes the input of `gateway policy explain`.

Reads an Asking (ipc/messages/checking.py) and writes an Asked to standard output. Manifests, learned rules and identity
mappings are read by the code that a front reads them with, and the question is made as a call's is; what only a running
gateway knows is assumed, and said. Serves nothing, opens no store, writes nothing else.
"""

import argparse
import os
import sys
from pathlib import Path
from typing import Final

import msgspec
from setproctitle import setproctitle

from frontend.actions.planning import draft
from frontend.actions.question import question_of
from frontend.actions.registry import Action, Registry, load_manifests
from frontend.actions.supposed import lease_of, mapping_of
from frontend.actions.targets import NOTHING_LEARNED
from frontend.actions.trust import Trusted, load_trusted
from frontend.egress.rulefile import learned_of
from frontend.errors import GateError
from frontend.files.problems import did_you_mean, shown
from frontend.manifests.manifest import BUILT_IN, Manifest
from frontend.schemas.parser import parse_body
from ipc.messages.checking import Asking, ExplainedInput
from ipc.messages.modules import ModuleVerdict
from ipc.process.exits import Exit
from ipc.process.parent import die_with_parent, refuse_core_dumps
from ipc.settings import Settings

_NO_DIGEST: Final = "sha256:" + "0" * 64
_OTHER: Final = "this is another request: its hash is {found}, and that of the call was {wanted}."


class CannotAsk(Exception):
    """There is no question; a sentence says why."""


def asked(asking: Asking) -> ExplainedInput:
    """The question that a call like this would be."""
    assumed: list[str] = []
    try:
        manifests, trusted = _manifests(asking.settings)
        action = _action(asking, manifests, trusted, assumed)
        body = _body(asking, action, assumed)
        mapping = mapping_of(asking.settings, asking.principal, assumed)
        learned = learned_of(asking.settings)
        drafted = draft(
            action, body, lease_of(mapping, asking.calls_remaining), 0,
            learned.get(action.action_id, NOTHING_LEARNED), settings=asking.settings,
        )  # fmt: skip
    except CannotAsk as problem:
        return ExplainedInput({}, problem=str(problem))
    except GateError as error:
        why = error.extra.get("reason") or error.extra.get("deny_reason") or error.cause
        more = " Give the whole request with --request FILE." if asking.request is None else ""
        return ExplainedInput(
            {}, problem=f"policy is not asked: the call is refused before, {error.code} ({why}).{more}"
        )
    if asking.request_hash not in {None, drafted.plan.request_hash}:
        if asking.request is not None:
            return ExplainedInput(
                {}, problem=_OTHER.format(found=drafted.plan.request_hash, wanted=asking.request_hash)
            )
        assumed[0] = f"{assumed[0]} That of the call had another hash: give it with --request FILE."
    sinks = {manifest.action_id: tuple(sorted(manifest.declared_side_effects)) for manifest in manifests}
    return ExplainedInput(dict(question_of(drafted, asking.calls_remaining).as_input()), tuple(assumed), sinks=sinks)


def _manifests(settings: Settings) -> tuple[tuple[Manifest, ...], Trusted]:
    folder = Path(settings.manifests_dir)
    manifests, problems = load_manifests(folder, has_proxy=settings.egress_proxy_url is not None)
    trusted, more = load_trusted(folder)
    if problems or more:
        raise CannotAsk(f"the manifests have problems, and gateway check tells all of them: {[*problems, *more][0]}")
    return manifests, trusted


def _action(asking: Asking, manifests: tuple[Manifest, ...], trusted: Trusted, assumed: list[str]) -> Action:
    action_id = asking.action_id
    manifest = next((one for one in manifests if one.action_id == action_id), None)
    if manifest is None:
        mend = did_you_mean(action_id, (one.action_id for one in manifests))
        raise CannotAsk(f"{asking.settings.manifests_dir} has no action {shown(action_id)}. {mend}")
    reference = manifest.provider_module_digest
    digest = _NO_DIGEST if reference.startswith(BUILT_IN) else reference
    built = Registry.build([manifest], [ModuleVerdict(reference, "ok", digest)], trusted).get(action_id)
    assert built is not None
    if built.trust_verdict == "digest_ok":
        assumed.append("The module is there and has its digest (gateway check looks).")
    return built


def _body(asking: Asking, action: Action, assumed: list[str]) -> object:
    if asking.request is None:
        assumed.insert(0, "The request is {}.")
        return {}
    if len(asking.request) > action.max_request_bytes:
        raise GateError("body_too_large", cause="max_request_bytes of the action")
    return parse_body(asking.request)


def main() -> int:
    """Entry point; returns an exit code."""
    parser = argparse.ArgumentParser(prog="frontend.configuration.asking", allow_abbrev=False)
    parser.add_argument("--asking-fd", type=int, required=True)
    parser.add_argument("--parent", type=int, required=True)
    options = parser.parse_args()
    die_with_parent(options.parent)
    refuse_core_dumps()
    setproctitle("gateway: policy command")
    with os.fdopen(options.asking_fd, "rb") as file:
        asking = msgspec.json.decode(file.read(), type=Asking)
    sys.stdout.buffer.write(msgspec.json.encode(asked(asking)))
    sys.stdout.buffer.flush()
    return Exit.OK


if __name__ == "__main__":
    sys.exit(main())
