"""The provider modules that manifests name: what to load, and what became of it.

One ModuleFile per (reference, imports), in the manifests' order; verdicts come back in that order. Never opens a
module.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

from frontend.actions.manifest import Manifest
from frontend.actions.problems import Problem
from frontend.actions.trust import BUILT_IN
from ipc.messages import ModuleFile, ModuleVerdict

_DIGEST_PREFIX = "sha256:"
_MENDS = {
    "missing": "Put it there, or name another module.",
    "refused": "Correct required_imports, or name another module.",
}

ModuleKey = tuple[str, tuple[str, ...]]


def module_files(manifests: Iterable[Manifest], modules_dir: Path) -> tuple[ModuleFile, ...]:
    """What the template must load: each module once per list of imports. `modules_dir` holds `<hex>.wasm` files."""
    return tuple(
        ModuleFile(reference, _path(reference, modules_dir), imports) for reference, imports in _keys(manifests)
    )


def by_module(manifests: Iterable[Manifest], verdicts: Sequence[ModuleVerdict]) -> dict[ModuleKey, ModuleVerdict]:
    """Verdicts by what they are about. Raises ValueError when they are not the answer to these manifests' modules."""
    found = dict(zip(_keys(manifests), verdicts, strict=True))
    if any(key[0] != verdict.reference for key, verdict in found.items()):
        raise ValueError("the verdicts are about other modules")
    return found


def module_key(manifest: Manifest) -> ModuleKey:
    """What identifies a manifest's module: its reference and the imports it may have."""
    return manifest.provider_module_digest, manifest.required_imports


def module_problems(manifests: Sequence[Manifest], verdicts: Sequence[ModuleVerdict]) -> list[Problem]:
    """Problems of modules that are missing or do not load. A mismatch is none: its calls are refused one by one."""
    found = by_module(manifests, verdicts)
    problems = []
    for manifest in manifests:
        verdict = found[module_key(manifest)]
        if verdict.verdict in {"ok", "mismatch"}:
            continue
        detail = verdict.detail.rstrip(".") or f"the module {verdict.reference} is {verdict.verdict}"
        mend = _MENDS.get(verdict.verdict, "Name another module.")
        problems.append(Problem(manifest.file, manifest.module_line, "provider_module_digest", f"{detail}.", mend))
    return problems


def _keys(manifests: Iterable[Manifest]) -> list[ModuleKey]:
    return list(dict.fromkeys(module_key(manifest) for manifest in manifests))


def _path(reference: str, modules_dir: Path) -> str | None:
    if reference.startswith(BUILT_IN):
        return None
    return str(modules_dir / f"{reference.removeprefix(_DIGEST_PREFIX)}.wasm")
