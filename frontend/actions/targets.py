"""The targets of one request: the HTTP request it sends, the file it names, and which of them are new.

Guarantees that policy, the operator and the worker get the same targets. A domain or path outside the action's lists is
unresolved, and policy holds the call for a person; a path that the manifest denies is refused here. Never asks policy.
"""

from typing import Any

import msgspec

from frontend.actions.registry import Action
from frontend.errors import GateError
from frontend.manifests.manifest import Files
from ipc.network import domains
from ipc.plan import FileAccess, PlannedRequest
from ipc.settings import Settings
from ipc.texts import paths


class Targets(msgspec.Struct, frozen=True):
    """`targets` for people and policy: `METHOD url` or `fs:<operation> <path>`."""

    targets: tuple[str, ...] = ()
    sinks: tuple[str, ...] = ()
    http_request: PlannedRequest | None = None
    files: FileAccess | None = None
    fs_path: str | None = None
    unresolved_domains: tuple[str, ...] = ()
    unresolved_paths: tuple[str, ...] = ()


class Learned(msgspec.Struct, frozen=True):
    """Domains and paths that operators have added to an action's own lists."""

    domains: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()


NOTHING_LEARNED = Learned()


def targets_of(action: Action, request: Any, learned: Learned, settings: Settings) -> Targets:
    """The targets of `request`, which the action has accepted.

    Raises GateError schema_violation for a value that has no place in the URL or is no plain path, and policy_denied
    for a path that the manifest denies.
    """
    if action.template is not None:
        return _http(action, request, learned)
    if action.manifest.files is not None:
        return _file(action, action.manifest.files, request, learned, settings.files_folder)
    return Targets(sinks=action.sinks)


def _http(action: Action, request: Any, learned: Learned) -> Targets:
    assert action.template is not None
    planned, host = action.template.render(request)
    is_known = domains.matches(host, action.allowed_domains) or domains.matches(host, learned.domains)
    return Targets(
        targets=(f"{planned.method} {planned.url}",),
        sinks=action.sinks,
        http_request=planned,
        unresolved_domains=() if is_known else (host,),
    )


def _file(action: Action, files: Files, request: Any, learned: Learned, files_folder: str) -> Targets:
    path = _path(action, files, request)
    segments = path.split("/")
    if paths.matches(segments, files.denied_paths):
        raise GateError("policy_denied", cause="fs.denied_paths", deny_reason="the action's manifest denies this path")
    is_known = paths.matches(segments, files.allowed_paths) or paths.matches(segments, learned.paths)
    return Targets(
        targets=(f"fs:{files.operation} {path}",),
        sinks=action.sinks,
        files=FileAccess(
            root=files.root_in(files_folder),
            allowed_operations=files.allowed_operations,
            # SECURITY: this path and no other. The patterns say what may be asked for; what policy and a person are
            # told of is what the provider gets, so that no module can use one path to be let in and touch another.
            allowed_paths=(path,) if is_known else (),
            denied_paths=files.denied_paths,
            max_file_bytes=files.max_file_bytes,
            max_total_bytes=files.max_total_bytes,
            max_files=files.max_files,
        ),
        fs_path=path,
        unresolved_paths=() if is_known else (path,),
    )


def _path(action: Action, files: Files, request: Any) -> str:
    value = request
    for step in action.path_steps:
        value = value.get(step) if isinstance(value, dict) else None
    if not isinstance(value, str):
        raise GateError("schema_violation", reason=f"{files.path_pointer}: must be a string")
    try:
        paths.check_path(value)
    except paths.InvalidPath as error:
        expected = f"must be a plain relative path ({error.rule.replace('_', ' ')})"
        raise GateError("schema_violation", reason=f"{files.path_pointer}: {expected}") from None
    return value
