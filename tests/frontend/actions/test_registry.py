from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from frontend.actions.registry import Action, Registry, load_manifests
from frontend.actions.trust import Trusted
from frontend.manifests.manifest import Manifest

ManifestOf = Callable[..., Manifest]
MINIMAL = "action_id: {id}\nversion: 1.0.0\nprovider_module_digest: builtin:echo\n"


def test_a_folder_of_manifests_is_read_file_by_file(tmp_path: Path) -> None:
    (tmp_path / "b.yaml").write_text(MINIMAL.format(id="b"))
    (tmp_path / "a.yml").write_text(MINIMAL.format(id="a"))
    (tmp_path / "trusted_modules.yaml").write_text("digests: {}\n")
    (tmp_path / ".hidden.yaml").write_text("junk")
    (tmp_path / "README.md").write_text("junk")
    (tmp_path / "modules").mkdir()
    manifests, problems = load_manifests(tmp_path, has_proxy=False)
    assert problems == []
    assert [manifest.action_id for manifest in manifests] == ["a", "b"]
    assert manifests[0].file == str(tmp_path / "a.yml")


def test_all_problems_of_all_files_are_told_sorted_by_file_and_line(tmp_path: Path) -> None:
    (tmp_path / "b.yaml").write_text("action_id: b\nversion: 1\nprovider_module_digest: x\n")
    (tmp_path / "a.yaml").write_text("action_id: [\n")
    (tmp_path / "c.yaml").symlink_to(tmp_path / "nowhere")
    _, problems = load_manifests(tmp_path, has_proxy=False)
    places = [(Path(problem.file).name, problem.line) for problem in problems]
    assert places == [("a.yaml", 2), ("b.yaml", 2), ("b.yaml", 3), ("c.yaml", 0)]


def test_an_action_has_targets_where_it_may_reach_a_host_or_a_file(action_of: Callable[..., Action]) -> None:
    free = {"template": None, "secrets": None}
    assert [action_of(kind).has_targets for kind in ("compute", "http", "files")] == [False, True, True]
    assert action_of("http", free).has_targets


def test_an_action_id_belongs_to_one_file(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(MINIMAL.format(id="same"))
    (tmp_path / "b.yaml").write_text(MINIMAL.format(id="same"))
    _, problems = load_manifests(tmp_path, has_proxy=False)
    assert [str(problem) for problem in problems] == [
        (
            f'{tmp_path}/b.yaml:1  action_id = "same" is taken by {tmp_path}/a.yaml:1. '
            "Give it another id, or remove one file."
        )
    ]


def test_a_missing_folder_is_a_problem_and_an_empty_one_is_not(tmp_path: Path) -> None:
    assert load_manifests(tmp_path, has_proxy=False) == ((), [])
    _, problems = load_manifests(tmp_path / "absent", has_proxy=False)
    assert "cannot be read" in str(problems[0])


def test_a_registry_answers_by_id(manifest_of_kind: ManifestOf, build_registry: Callable[..., Registry]) -> None:
    registry = build_registry([manifest_of_kind("http"), manifest_of_kind("compute")])
    assert len(registry) == 2
    assert [action.action_id for action in registry.actions] == ["http_post", "text_digest"]
    assert registry.get("text_digest") is registry.actions[1]
    assert registry.get("nothing") is None
    assert len(Registry()) == 0


def test_a_module_is_known_only_while_an_action_with_it_is_trusted(
    manifest_of_kind: ManifestOf, build_registry: Callable[..., Registry]
) -> None:
    digest = "sha256:" + "c" * 64
    manifest = manifest_of_kind("compute", {"provider_module_digest": digest})
    trusting, doubting = build_registry([manifest], Trusted(frozenset({digest}))), build_registry([manifest])
    assert trusting.has_module(digest)
    assert not doubting.has_module(digest)
    assert not Registry().has_module("")
    verdicts = [registry.actions[0].trust_verdict for registry in (trusting, doubting)]
    assert verdicts == ["digest_ok", "not_registered"]


def test_sinks_are_the_declared_side_effects(
    manifest_of_kind: ManifestOf, build_registry: Callable[..., Registry]
) -> None:
    manifest = manifest_of_kind("http", {"declared_side_effects": ["http_write", "audit_log"]})
    assert build_registry([manifest]).actions[0].sinks == ("audit_log", "http_write")


def test_verdicts_must_answer_the_manifests(manifest_of_kind: ManifestOf) -> None:
    with pytest.raises(ValueError, match=r".+"):
        Registry.build([manifest_of_kind("compute")], [], Trusted())


def test_the_example_actions_have_no_problem() -> None:
    folder = Path(__file__).parents[3] / "contrib" / "examples" / "actions"
    manifests, problems = load_manifests(folder, has_proxy=False)
    assert [str(problem) for problem in problems] == []
    assert {manifest.action_id: manifest.risk_level for manifest in manifests} == {
        "text_digest": "low", "file_write": "medium", "http_fetch": "medium", "http_post": "medium",
        "payment_transfer": "critical", "spin": "low", "forbidden_export": "high",
    }  # fmt: skip


def test_the_reader_reads_the_examples_as_yaml_does() -> None:
    folder = Path(__file__).parents[3] / "contrib" / "examples" / "actions"
    for manifest in load_manifests(folder, has_proxy=False)[0]:
        loaded = yaml.safe_load(Path(manifest.file).read_text())
        assert loaded["io"]["request_schema"] == manifest.io.request_schema
        assert str(loaded["version"]) == manifest.version
