from collections.abc import Callable
from pathlib import Path

import pytest

from frontend.actions.manifest import Manifest
from frontend.actions.modules import by_module, module_files, module_problems
from ipc.messages import ModuleFile, ModuleVerdict

DIGEST = "sha256:" + "a" * 64
ManifestOf = Callable[..., Manifest]


def test_each_module_is_loaded_once_for_each_list_of_imports(manifest_of_kind: ManifestOf) -> None:
    manifests = [
        manifest_of_kind("compute", {"provider_module_digest": DIGEST}),
        manifest_of_kind("compute"),
        manifest_of_kind("compute", {"provider_module_digest": DIGEST, "required_imports": ["log"]}),
        manifest_of_kind("compute", {"provider_module_digest": DIGEST}),
    ]
    assert module_files(manifests, Path("/modules")) == (
        ModuleFile(DIGEST, f"/modules/{'a' * 64}.wasm", ()),
        ModuleFile("builtin:text_digest", None, ()),
        ModuleFile(DIGEST, f"/modules/{'a' * 64}.wasm", ("log",)),
    )


def test_a_module_that_does_not_load_is_a_problem_of_every_manifest_that_names_it(manifest_of_kind: ManifestOf) -> None:
    manifests = [manifest_of_kind("compute"), manifest_of_kind("http"), manifest_of_kind("compute", {"action_id": "b"})]
    detail = "provider imports gateway:provider/http, which required_imports does not list"
    verdicts = [
        ModuleVerdict("builtin:text_digest", "refused", None, detail),
        ModuleVerdict("builtin:http", "mismatch", DIGEST),
    ]
    problems = module_problems(manifests, verdicts)
    assert [str(problem) for problem in problems] == [
        f"action.yaml:3  {detail}. Correct required_imports, or name another module."
    ] * 2


def test_verdicts_about_other_modules_are_refused(manifest_of_kind: ManifestOf) -> None:
    manifest = manifest_of_kind("compute")
    for verdicts in ([], [ModuleVerdict("builtin:echo", "ok", DIGEST)]):
        with pytest.raises(ValueError, match=r".+"):
            by_module([manifest], verdicts)
