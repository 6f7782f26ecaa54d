from collections.abc import Callable
from pathlib import Path

import pytest

from frontend.actions.modules import by_module, module_doubts, module_files, module_problems
from frontend.actions.trust import Trusted
from frontend.manifests.manifest import Manifest
from ipc.messages.modules import ModuleFile, ModuleVerdict

DIGEST = "sha256:" + "a" * 64
OTHER = "sha256:" + "b" * 64
MODULES = Path("/modules")
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
    detail = "imports gateway:provider/http@1.0.0, which required_imports does not list"
    verdicts = [
        ModuleVerdict("builtin:text_digest", "refused", DIGEST, detail),
        ModuleVerdict("builtin:http", "mismatch", DIGEST),
    ]
    problems = module_problems(manifests, verdicts, MODULES)
    assert [str(problem) for problem in problems] == [
        (
            f"action.yaml:3  module builtin:text_digest ({DIGEST}): {detail}. "
            "Add http to required_imports, or name another module."
        )
    ] * 2


@pytest.mark.parametrize(
    ("verdict", "detail", "said"),
    [
        ("missing", "the module can't be read: No such file or directory", "Put it there, or name another module."),
        ("refused", "imports wasi:cli/run@0.2.0, which required_imports does not list", "list. Name another module."),
        ("refused", "not a component", "not a component. Name another module."),
        ("refused", "", "is refused. Name another module."),
        ("refused", "imports a\x1b[2Jb\u202e\n" + "c" * 9000, r"imports a\x1b[2Jb\u202e\nccc"),
    ],
)
def test_a_problem_of_a_module_names_its_file_and_with_it_its_digest(
    manifest_of_kind: ManifestOf, verdict: str, detail: str, said: str
) -> None:
    manifests = [manifest_of_kind("compute", {"provider_module_digest": DIGEST})]
    (problem,) = module_problems(manifests, [ModuleVerdict(DIGEST, verdict, None, detail)], MODULES)
    assert str(problem).startswith(f"action.yaml:3  module /modules/{'a' * 64}.wasm: ")
    assert said in str(problem)
    assert len(str(problem)) < 900


def test_modules_whose_calls_would_be_refused_are_doubts(manifest_of_kind: ManifestOf) -> None:
    manifests = [manifest_of_kind("compute", {"provider_module_digest": DIGEST}), manifest_of_kind("http")]
    http = ModuleVerdict("builtin:http", "ok", OTHER)
    detail = f"the module is {OTHER}, not {DIGEST}"

    def doubts(found: ModuleVerdict, trusted: Trusted) -> list[str]:
        return [str(problem) for problem in module_doubts(manifests, [found, http], MODULES, trusted)]

    assert doubts(ModuleVerdict(DIGEST, "mismatch", OTHER, detail), Trusted(frozenset({DIGEST}))) == [
        (
            f"action.yaml:3  module /modules/{'a' * 64}.wasm: {detail}. "
            "Put the reviewed module there, or correct provider_module_digest."
        )
    ]
    assert doubts(ModuleVerdict(DIGEST, "ok", DIGEST), Trusted()) == [
        (
            f"action.yaml:3  module /modules/{'a' * 64}.wasm: trusted_modules.yaml does not list {DIGEST}, "
            "so every call would be refused. Review the module and enter its digest there."
        )
    ]
    assert doubts(ModuleVerdict(DIGEST, "ok", DIGEST), Trusted(frozenset({DIGEST}))) == []
    assert doubts(ModuleVerdict(DIGEST, "missing", None, "gone"), Trusted(frozenset({DIGEST}))) == []


def test_verdicts_about_other_modules_are_refused(manifest_of_kind: ManifestOf) -> None:
    manifest = manifest_of_kind("compute")
    for verdicts in ([], [ModuleVerdict("builtin:echo", "ok", DIGEST)]):
        with pytest.raises(ValueError, match=r".+"):
            by_module([manifest], verdicts)
