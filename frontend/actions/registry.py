"""The registry: every action that can be called, compiled once per load.

A Registry is immutable; a reload builds another and the caller swaps one reference. Guarantees that an Action holds all
that does not depend on the request, so that a call computes only what it must. Never reads a file per request.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from frontend.actions.modules import by_module, module_key
from frontend.actions.near import near
from frontend.actions.trust import NOTHING_TRUSTED, TRUSTED_FILE, Trusted
from frontend.actions.views import manifest_view, summary
from frontend.files.claimed import claimed_names
from frontend.files.closed import why_closed
from frontend.files.problems import FileProblem, Report, shown
from frontend.manifests.file_names import is_manifest_name
from frontend.manifests.manifest import BUILT_IN, Manifest
from frontend.manifests.mcp import CompiledTool
from frontend.manifests.reading import manifest_of, read_file
from frontend.manifests.templates import CompiledTemplate
from frontend.manifests.verification import planned_config
from frontend.manifests.yamltree import Node
from frontend.schemas.validator import Validator
from ipc.messages.modules import ModuleVerdict
from ipc.plan import CallLimits, SecretUse
from ipc.texts.pointers import steps_of


class Action(msgspec.Struct, frozen=True):
    """One action, ready to be called. `trust_verdict`: digest_ok, mismatch or not_registered."""

    manifest: Manifest
    action_id: str
    version: str
    risk_level: str
    digest: str
    """`sha256:<hex>` of the module; empty when a built-in one did not load."""
    trust_verdict: str
    profile: str
    required_scopes: tuple[str, ...]
    sinks: tuple[str, ...]
    limits: CallLimits
    secrets: tuple[SecretUse, ...]
    secret_names: tuple[str, ...]
    egress_profile: str
    allowed_domains: tuple[str, ...]
    allowed_methods: tuple[str, ...]
    max_request_bytes: int
    request_schema: dict[str, Any] | None
    request_validator: Validator | None
    response_schema: str | None
    """JSON text."""
    verification_config: str
    """JSON text."""
    template: CompiledTemplate | CompiledTool | None
    """Makes the one request that a call sends."""
    path_steps: tuple[str, ...]
    """Keys that lead to the path in a request of an fs action."""

    @property
    def has_targets(self) -> bool:
        """Whether it may reach a host or a file: only then can it have learned one."""
        return self.egress_profile != "none" or self.template is not None or self.manifest.files is not None

    def accept(self, body: Any) -> Any:
        """The request that `body` makes, after null-dropping. Raises GateError schema_violation."""
        return body if self.request_validator is None else self.request_validator.accept(body)


class Registry:
    """All actions of one load, by id."""

    def __init__(self, actions: Iterable[Action] = (), trusted: Trusted = NOTHING_TRUSTED) -> None:
        self._actions = {action.action_id: action for action in sorted(actions, key=lambda action: action.action_id)}
        self._modules = frozenset(a.digest for a in self._actions.values() if a.trust_verdict == "digest_ok")
        self._trusted = trusted
        self._summaries = [summary(action.manifest) for action in self._actions.values()]
        self.encoded: dict[str, bytes] = {}
        """Action id, or the name of a list -> the body that shows it, once a client has asked for it."""

    @classmethod
    def build(cls, manifests: Sequence[Manifest], verdicts: Sequence[ModuleVerdict], trusted: Trusted) -> "Registry":
        """Compile manifests without problems. `verdicts` answer modules.module_files(manifests); raises ValueError
        when they do not."""
        modules = by_module(manifests, verdicts)
        return cls((_action(manifest, modules[module_key(manifest)], trusted) for manifest in manifests), trusted)

    def __len__(self) -> int:
        return len(self._actions)

    def get(self, action_id: str) -> Action | None:
        """The action of that id."""
        return self._actions.get(action_id)

    def near(self, action_id: str) -> list[str]:
        """Registered ids that are close to an unknown one."""
        return near(action_id, self._actions)

    @property
    def actions(self) -> tuple[Action, ...]:
        """All actions, by id."""
        return tuple(self._actions.values())

    def sinks_of(self, actions: Iterable[str]) -> frozenset[str]:
        """The sinks that these actions declare; of one that is not registered, none."""
        return frozenset(sink for name in actions if name in self._actions for sink in self._actions[name].sinks)

    def has_module(self, digest: str) -> bool:
        """True when an action of this load runs the module `digest` and it is trusted."""
        return digest in self._modules

    def trusts(self, digest: str) -> bool:
        """True when an operator has entered this digest, whether or not an action of this load runs the module."""
        return digest in self._trusted.digests

    def summaries(self) -> list[dict[str, Any]]:
        """Items of GET /v1/actions (docs/contract.md, "Action summary")."""
        return self._summaries

    def manifest_view(self, action: Action) -> dict[str, Any]:
        """GET /v1/actions/{action_id} (docs/contract.md, "Action manifest")."""
        return manifest_view(action.manifest, action.digest, action.sinks)


def load_manifests(manifests_dir: Path, *, has_proxy: bool) -> tuple[tuple[Manifest, ...], list[FileProblem]]:
    """Every manifest (`*.yaml`, `*.yml`, not `*.test.yaml`) of a folder, and every problem, sorted by file and line.

    With problems, nothing of the folder may be used. `has_proxy`: the configuration sets egress_proxy_url.
    """
    try:
        names, refusals = claimed_names(manifests_dir, is_manifest_name)
    except OSError as error:
        message = f"the manifests folder cannot be read: {why_closed(manifests_dir, error)}."
        return (), [FileProblem(str(manifests_dir), 0, "", message, "Create it, or correct manifests_dir.")]
    manifests: list[Manifest] = []
    places: dict[str, str] = {}
    problems = [FileProblem(str(manifests_dir / one.name), 0, "", one.problem, one.mend) for one in refusals]
    for path in (manifests_dir / name for name in names if name != TRUSTED_FILE):
        report = Report(str(path))
        tree = read_file(path, report)
        if tree is not None:
            manifest = manifest_of(tree, report, has_proxy=has_proxy)
            manifests += [manifest] if manifest else []
            _refuse_second(tree, report, places)
        problems += report.problems
    return tuple(manifests), sorted(problems)


def _refuse_second(tree: Node, report: Report, places: dict[str, str]) -> None:
    """Note an id that a file before has; `places` maps ids to where they stand. A file may be broken otherwise."""
    node = tree.value.get("action_id") if isinstance(tree.value, dict) else None
    if node is None or not isinstance(node.value, str):
        return
    here = f"{report.file}:{node.line}"
    first = places.setdefault(node.value, here)
    if first != here:
        message = f"action_id = {shown(node.value)} is taken by {first}."
        report.add(node.line, "action_id", message, "Give it another id, or remove one file.")


def _action(manifest: Manifest, module: ModuleVerdict, trusted: Trusted) -> Action:
    reference = manifest.provider_module_digest
    files, egress, io = manifest.files, manifest.egress, manifest.io
    template = _compiled(manifest)
    return Action(
        manifest=manifest,
        action_id=manifest.action_id,
        version=manifest.version,
        risk_level=manifest.risk_level,
        digest=(module.digest or "") if reference.startswith(BUILT_IN) else reference,
        trust_verdict=trusted.verdict(reference, module),
        profile=manifest.profile,
        required_scopes=manifest.required_scopes,
        sinks=tuple(sorted(manifest.declared_side_effects)),
        limits=manifest.limits,
        secrets=tuple(_bound(secret, manifest, template) for secret in manifest.secrets),
        secret_names=tuple(secret.name for secret in manifest.secrets),
        egress_profile=egress.profile,
        allowed_domains=egress.allowed_domains,
        allowed_methods=egress.allowed_methods or ((manifest.template.method,) if manifest.template else ()),
        max_request_bytes=io.max_request_bytes,
        request_schema=io.request_schema,
        request_validator=Validator(io.request_schema) if io.request_schema is not None else None,
        response_schema=msgspec.json.encode(io.response_schema).decode() if io.response_schema is not None else None,
        verification_config=msgspec.json.encode(planned_config(manifest), order="sorted").decode(),
        template=template,
        path_steps=tuple(steps_of(files.path_pointer)) if files else (),
    )


def _compiled(manifest: Manifest) -> CompiledTemplate | CompiledTool | None:
    if manifest.mcp is not None:
        return CompiledTool(manifest.mcp)
    if manifest.template is None:
        return None
    return CompiledTemplate(manifest.template, manifest.response, manifest.idempotency_header)


def _bound(secret: SecretUse, manifest: Manifest, template: CompiledTemplate | CompiledTool | None) -> SecretUse:
    """A secret with the hosts that it is sent to: its own, else the template's host, else the action's domains.

    SECURITY: domains that were learned or approved later are not among them.
    """
    if secret.domains or secret.way is None:
        return secret
    host = template.url.host if template else None
    domains = manifest.egress.allowed_domains if host is None else (host,)
    return msgspec.structs.replace(secret, domains=domains)
