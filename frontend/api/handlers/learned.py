"""Learned domains and paths: what operators add to what manifests allow, and how they take it back."""

from typing import cast

from contract.learned import (
    Cleared,
    DomainOfAction,
    LearnedDomain,
    LearnedDomains,
    LearnedPath,
    LearnedPaths,
    PathOfAction,
    Removed,
    Source,
)
from frontend.auth.authentication import OperatorCaller
from frontend.contract.annotations import codes
from frontend.contract.learned import DomainForm, OfAction, PathForm
from frontend.egress.rules import DOMAINS, PATHS, InvalidRule, LearnedKind, below_root
from frontend.errors import GateError
from frontend.services import Services

_CHANGING = ("learned_rules_unavailable", "evidence_store_unavailable")
_CHANGING_DOMAINS = (*_CHANGING, "allowlist_sync_failed")


@codes("learned_rules_unavailable")
async def domains(services: Services, query: OfAction) -> LearnedDomains:
    """List learned domains, of all actions or of one."""
    return LearnedDomains(
        domains=tuple(
            LearnedDomain(
                domain=rule.text, action_id=rule.action_id, source=cast(Source, rule.source),
                added_at=rule.added_at, added_by=rule.added_by,
            )
            for rule in services.learned.listed(DOMAINS, query.action)
        )
    )  # fmt: skip


@codes("invalid_domain", "unknown_action", "domain_already_exists", "too_many_rules", *_CHANGING_DOMAINS)
async def add_domain(services: Services, form: DomainForm, operator: OperatorCaller) -> DomainOfAction:
    """Add a domain to what an action may reach, from the next call on."""
    domain = await _added(services, DOMAINS, form.action_id, form.domain, operator)
    return DomainOfAction(domain=domain, action_id=form.action_id)


@codes("invalid_domain", "domain_not_found", *_CHANGING_DOMAINS)
async def remove_domain(services: Services, form: DomainForm, operator: OperatorCaller) -> Removed:
    """Take a learned domain back. Calls under way and plans that wait for approval keep what they were made with."""
    return await _removed(services, DOMAINS, form.action_id, form.domain, operator)


@codes(*_CHANGING_DOMAINS)
async def clear_domains(services: Services, query: OfAction, operator: OperatorCaller) -> Cleared:
    """Take back every learned domain, of all actions or of one."""
    return Cleared(cleared=True, count=await services.learned.clear(DOMAINS, query.action, operator))


@codes("learned_rules_unavailable")
async def paths(services: Services, query: OfAction) -> LearnedPaths:
    """List learned paths, of all actions or of one."""
    return LearnedPaths(
        paths=tuple(
            LearnedPath(
                path=rule.given or rule.text, path_glob=rule.text, action_id=rule.action_id,
                source=cast(Source, rule.source), added_at=rule.added_at, added_by=rule.added_by,
            )
            for rule in services.learned.listed(PATHS, query.action)
        )
    )  # fmt: skip


@codes("invalid_path", "unknown_action", "path_already_exists", "too_many_rules", *_CHANGING)
async def add_path(services: Services, form: PathForm, operator: OperatorCaller) -> PathOfAction:
    """Add a path pattern to what an action may touch, from the next call on. The manifest still denies its own."""
    given = _path(form)
    rule = await _added(services, PATHS, form.action_id, given, operator)
    return PathOfAction(path=given, path_glob=rule, action_id=form.action_id)


@codes("invalid_path", "path_not_found", *_CHANGING)
async def remove_path(services: Services, form: PathForm, operator: OperatorCaller) -> Removed:
    """Take a learned path back. Calls under way and plans that wait for approval keep what they were made with."""
    return await _removed(services, PATHS, form.action_id, _path(form), operator)


@codes(*_CHANGING)
async def clear_paths(services: Services, query: OfAction, operator: OperatorCaller) -> Cleared:
    """Take back every learned path, of all actions or of one."""
    return Cleared(cleared=True, count=await services.learned.clear(PATHS, query.action, operator))


async def _added(services: Services, kind: LearnedKind, action_id: str, text: str, operator: OperatorCaller) -> str:
    rule = _normal(services, kind, action_id, text)
    if services.registry.get(action_id) is None:
        raise GateError("unknown_action")
    given = text if kind is PATHS and rule != text else None
    if not await services.learned.add(kind, action_id, rule, operator, given=given):
        raise GateError(f"{kind.noun}_already_exists")
    return rule


async def _removed(
    services: Services, kind: LearnedKind, action_id: str, text: str, operator: OperatorCaller
) -> Removed:
    # An action that is not registered any more may have left rules: they can be removed.
    is_as_given = kind is PATHS and text.startswith("/") and _root(services, action_id) is None
    rule = text if is_as_given else _normal(services, kind, action_id, text)
    if not await services.learned.remove(kind, action_id, rule, operator):
        raise GateError(f"{kind.noun}_not_found")
    return Removed(removed=True)


def _normal(services: Services, kind: LearnedKind, action_id: str, text: str) -> str:
    """The rule in normal form; an absolute path below the action's root relative to that."""
    try:
        return kind.normal(below_root(text, _root(services, action_id)) if kind is PATHS else text)
    except InvalidRule as error:
        raise GateError(f"invalid_{kind.noun}", message=f"it {error}") from None


def _root(services: Services, action_id: str) -> str | None:
    action = services.registry.get(action_id)
    files = None if action is None else action.manifest.files
    return None if files is None else files.root_in(services.settings.files_folder)


def _path(form: PathForm) -> str:
    """The pattern under whichever name it was sent. Raises invalid_request."""
    path = form.path if form.path is not None else form.path_glob
    if path is None:
        raise GateError("invalid_request", message="path: is missing; must be a string")
    if form.path_glob is not None and form.path_glob != path:
        raise GateError("invalid_request", message="path and path_glob: send one of them, or the same twice")
    return path
