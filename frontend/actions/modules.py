"""The provider modules that manifests name: what to load, and what became of it.

One ModuleFile per (reference, imports), in the manifests' order; verdicts come back in that order. Never opens a
module.
"""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from frontend.actions.trust import TRUSTED_FILE, Trusted
from frontend.files.problems import FileProblem, printable
from frontend.manifests.manifest import BUILT_IN, Manifest
from ipc.effects import IMPORTS
from ipc.messages.modules import ModuleFile, ModuleVerdict
from ipc.plan import Plan
from ipc.settings import Settings

_DIGEST_PREFIX = "sha256:"
_EXCESS = re.compile(r"imports (gateway:provider/([a-z]+)@\S+),")

ModuleKey = tuple[str, tuple[str, ...]]


def module_files(manifests: Iterable[Manifest], modules_dir: Path) -> tuple[ModuleFile, ...]:
    """The modules that the template must load: each once per list of imports. `modules_dir` holds `<hex>.wasm`
    files."""
    return tuple(
        ModuleFile(reference, _path(reference, modules_dir), imports) for reference, imports in _keys(manifests)
    )


def held_module(plan: Plan, modules_dir: Path) -> ModuleFile:
    """The module of a stored plan, by its digest."""
    digest = plan.provider_module_digest
    return ModuleFile(digest, _path(digest, modules_dir), plan.required_imports, is_held=True)


def modules_folder(settings: Settings) -> Path:
    """The folder of the modules that are not built in."""
    return Path(settings.modules_dir or Path(settings.manifests_dir) / "modules")


def by_module(manifests: Iterable[Manifest], verdicts: Sequence[ModuleVerdict]) -> dict[ModuleKey, ModuleVerdict]:
    """Verdicts by what they are about. Raises ValueError when they are not the answer to these manifests' modules."""
    matched = dict(zip(_keys(manifests), verdicts, strict=True))
    if any(key[0] != verdict.reference for key, verdict in matched.items()):
        raise ValueError("the verdicts are about other modules")
    return matched


def module_key(manifest: Manifest) -> ModuleKey:
    """The key of a manifest's module: its reference and the imports it may have."""
    return manifest.provider_module_digest, manifest.required_imports


def module_problems(
    manifests: Sequence[Manifest], verdicts: Sequence[ModuleVerdict], modules_dir: Path
) -> list[FileProblem]:
    """Problems of modules that are missing or do not load. A digest mismatch is not reported here: each call is
    refused instead."""
    by_key = by_module(manifests, verdicts)
    problems = []
    for manifest in manifests:
        verdict = by_key[module_key(manifest)]
        if verdict.verdict not in {"ok", "mismatch"}:
            detail = printable(verdict.detail.rstrip(".")) or f"is {verdict.verdict}"
            message = f"{_shown(manifest, verdict, modules_dir)}: {detail}."
            problems.append(_problem(manifest, message, _mend(verdict)))
    return problems


def module_doubts(
    manifests: Sequence[Manifest], verdicts: Sequence[ModuleVerdict], modules_dir: Path, trusted: Trusted
) -> list[FileProblem]:
    """Modules whose every call would be refused (docs/contract.md, "Execute endpoint", codes action_digest_mismatch and
    action_not_registered), though the gateway serves what else there is."""
    by_key = by_module(manifests, verdicts)
    problems = []
    for manifest in manifests:
        reference, verdict = manifest.provider_module_digest, by_key[module_key(manifest)]
        trust = trusted.verdict(reference, verdict)
        shown = _shown(manifest, verdict, modules_dir)
        if trust == "mismatch":
            message = f"{shown}: {printable(verdict.detail.rstrip('.')) or 'the bytes have another digest'}."
            mend = "Put the reviewed module there, or correct provider_module_digest."
            problems.append(_problem(manifest, message, mend))
        elif trust == "not_registered" and verdict.verdict == "ok":
            message = f"{shown}: {TRUSTED_FILE} does not list {reference}, so every call would be refused."
            problems.append(_problem(manifest, message, "Review the module and enter its digest there."))
    return problems


def _problem(manifest: Manifest, message: str, mend: str) -> FileProblem:
    return FileProblem(manifest.file, manifest.module_line, "provider_module_digest", message, mend)


def _shown(manifest: Manifest, verdict: ModuleVerdict, modules_dir: Path) -> str:
    """Which module a sentence is about: its file, which names its digest, or its name with the digest."""
    reference = manifest.provider_module_digest
    path = _path(reference, modules_dir)
    if path is not None:
        return f"module {path}"
    return f"module {reference} ({verdict.digest})" if verdict.digest else f"module {reference}"


def _mend(verdict: ModuleVerdict) -> str:
    if verdict.verdict == "missing":
        return "Put it there, or name another module."
    excess = _EXCESS.search(verdict.detail)
    if excess and excess[2] in IMPORTS:
        return f"Add {excess[2]} to required_imports, or name another module."
    return "Name another module."


def _keys(manifests: Iterable[Manifest]) -> list[ModuleKey]:
    return list(dict.fromkeys(module_key(manifest) for manifest in manifests))


def _path(reference: str, modules_dir: Path) -> str | None:
    if reference.startswith(BUILT_IN):
        return None
    return str(modules_dir / f"{reference.removeprefix(_DIGEST_PREFIX)}.wasm")
