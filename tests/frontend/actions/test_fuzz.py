"""Manifests out of spoilt files: always a manifest or problems with places, and never anything else."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontend.actions.registry import load_manifests
from frontend.actions.trust import load_trusted
from frontend.files.problems import FileProblem, Report
from frontend.manifests.reading import manifest_of, read_bytes
from frontend.schemas.validator import Validator
from tests.support.manifests import EXAMPLES
from tests.support.mutations import spoilt

FILES = [path.read_bytes() for path in sorted((EXAMPLES / "actions").glob("*.yaml"))]
LINE_ENDS = [end.encode() for end in ("\n", "\r", "\x85", "\u2028", "\u2029")]
"""The words that YAML 1.1 reads as truth values."""
WORDS = [
    "\n", "  ", "- ", ": ", "{", "}", "[", "]", "&a", "*a", "!!python/object:os.system ", "|\n", ">-\n", "---\n", "#",
    "null", "~", "0x10", "1e999", "-0", "\t", "\x00", "\ufeff", "'", '"', "%YAML 1.1\n", "? ", "<<: ", "fs:",
    "request_schema", "pattern: '(a+)+'", "pattern: '('", "$ref: '#'", "properties",
    "{value}", '"a\\nb\\u202e": ', "{+path}", "https://",
]  # fmt: skip


def check_problems(problems: list[FileProblem], lines: int) -> None:
    for problem in problems:
        assert 0 <= problem.line <= lines + 1
        assert problem.message
        assert str(problem).isprintable()


@given(spoilt(FILES, WORDS))
def test_a_spoilt_manifest_is_a_manifest_or_problems_with_places(data: bytes) -> None:
    report = Report("f.yaml")
    tree = read_bytes(data, report)
    manifest = manifest_of(tree, report, has_proxy=False) if tree else None
    assert (manifest is None) is bool(report.problems)
    check_problems(report.problems, sum(map(data.count, LINE_ENDS)))
    if manifest is not None and manifest.io.request_schema is not None:
        Validator(manifest.io.request_schema)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory: Path = tmp_path_factory.mktemp("manifests")
    return directory


@given(st.lists(spoilt(FILES, WORDS), min_size=1, max_size=3), st.binary(max_size=60))
def test_a_folder_of_spoilt_files_is_read_or_told(folder: Path, files: list[bytes], trusted: bytes) -> None:
    for number, data in enumerate(files):
        (folder / f"{number}.yaml").write_bytes(data)
    (folder / "trusted_modules.yaml").write_bytes(trusted)
    manifests, problems = load_manifests(folder, has_proxy=True)
    assert problems == sorted(problems)
    assert len({manifest.action_id for manifest in manifests}) == len(manifests) or problems
    load_trusted(folder)


PATTERNS = st.text("ab()[]{}|*+?^$\\.,-:=!<>1d", max_size=10)
NAMES = st.sampled_from(["a", "type", "pattern", "$ref", "properties", "items"])
SCHEMAS = st.recursive(
    st.booleans()
    | st.fixed_dictionaries({"pattern": PATTERNS})
    | st.fixed_dictionaries({"$ref": st.sampled_from(["#", "#/properties/a", "#/$defs/b", "#b", "x", "#/%24defs/b"])})
    | st.fixed_dictionaries({"type": st.sampled_from(["string", "object", "array", "nothing", 5])})
    | st.fixed_dictionaries({"format": st.sampled_from(["date", "int32", 3])})
    | st.fixed_dictionaries({"$id": st.sampled_from(["https://a.example/", 3]), "$anchor": st.just("b")}),
    lambda inner: (
        st.fixed_dictionaries({"properties": st.dictionaries(NAMES, inner, max_size=2)})
        | st.fixed_dictionaries({"patternProperties": st.dictionaries(PATTERNS, inner, max_size=2)})
        | st.fixed_dictionaries({"items": inner, "$defs": st.fixed_dictionaries({"b": inner})})
        | st.fixed_dictionaries({"anyOf": st.lists(inner, min_size=1, max_size=2), "not": inner})
        | st.fixed_dictionaries({"const": inner, "enum": st.lists(inner, min_size=1, max_size=1)})
    ),
    max_leaves=6,
)


@given(SCHEMAS.filter(lambda schema: isinstance(schema, dict)))
def test_any_schema_is_compiled_or_refused_with_its_place(schema: dict[str, Any]) -> None:
    document = {
        "action_id": "a", "version": "1.0.0", "provider_module_digest": "builtin:echo",
        "io": {"request_schema": schema},
    }  # fmt: skip
    report = Report("f.yaml")
    tree = read_bytes(msgspec.json.format(msgspec.json.encode(document), indent=1), report)
    assert tree is not None
    manifest = manifest_of(tree, report, has_proxy=False)
    assert (manifest is None) is bool(report.problems)
    assert all(problem.line >= 5 for problem in report.problems), list(map(str, report.problems))
    if manifest is not None:
        Validator(schema)
