"""The JSON Schema of manifests against the code that reads them: neither knows what the other lacks."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from frontend.actions.describe import manifest_schema
from frontend.files.problems import FileProblem, Report
from frontend.manifests.fields import Section
from frontend.manifests.reading import read_bytes, read_fields
from tests.frontend.actions.conftest import KINDS

ROOT = Path(__file__).resolve().parents[3]
SCHEMA = manifest_schema()
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
EXAMPLES = sorted((ROOT / "contrib" / "examples" / "actions").glob("*.yaml"))
NOT_A_MATTER_OF_FORM = re.compile(
    r"Write a name such as api\.example\.com|is not in its normal form|is no such path|stands here twice"
    r"|fs\.operation is missing|or another of header, query|and a secret has one way|is for inject\.header alone"
)


def problems_of(document: Any) -> list[FileProblem]:
    """The reader's problems with the fields, one by one."""
    report = Report("m.yaml")
    tree = read_bytes(msgspec.json.encode(document), report)
    assert tree is not None
    read_fields(Section(tree, (), report))
    return report.problems


def with_change(kind: str, path: tuple[str | int, ...], value: Any) -> dict[str, Any]:
    document: Any = msgspec.json.decode(msgspec.json.encode(KINDS[kind]))
    inner = document
    for step in path[:-1]:
        inner = inner[step] if isinstance(step, int) else inner.setdefault(step, {})
    if value is ...:
        del inner[path[-1]]
    else:
        inner[path[-1]] = value
    changed: dict[str, Any] = document
    return changed


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_fits_its_schema(path: Path) -> None:
    VALIDATOR.validate(yaml.safe_load(path.read_text()))


def test_the_manifest_of_the_document_fits() -> None:
    blocks = re.findall(r"```yaml\n(action_id.*?)```", (ROOT / "docs" / "manifests.md").read_text(), re.DOTALL)
    assert blocks
    for block in blocks:
        VALIDATOR.validate(yaml.safe_load(block))


@pytest.mark.parametrize("kind", KINDS)
def test_the_kinds_of_manifests_fit(kind: str) -> None:
    VALIDATOR.validate(KINDS[kind])


@pytest.mark.parametrize(
    ("kind", "path", "value"),
    [
        ("compute", ("action_id",), ...),
        ("compute", ("version",), ...),
        ("compute", ("provider_module_digest",), ...),
        ("compute", ("action_id",), "-a"),
        ("compute", ("action_id",), "a" * 257),
        ("compute", ("version",), "1.0"),
        ("compute", ("version",), 1.0),
        ("compute", ("description",), "a\x00b"),
        ("compute", ("tags",), ["a", "a"]),
        ("compute", ("tags",), ["a b"]),
        ("compute", ("tags",), [str(number) for number in range(33)]),
        ("compute", ("provider_module_digest",), "sha256:abc"),
        ("compute", ("required_imports",), ["smtp"]),
        ("compute", ("required_scopes",), ["call"]),
        ("compute", ("risk_level",), "extreme"),
        ("compute", ("resource_limits", "fuel"), 0),
        ("compute", ("resource_limits", "fuel"), "5"),
        ("compute", ("resource_limits", "memory_mb"), 1025),
        ("compute", ("resource_limits", "timeout_seconds"), 0),
        ("compute", ("resource_limits", "max_io_calls"), -1),
        ("compute", ("resource_limits", "feul"), 1),
        ("compute", ("io", "max_request_bytes"), 0),
        ("compute", ("io", "request_schema"), [1]),
        ("compute", ("io", "request_schema"), {"type": "integr"}),
        ("compute", ("isolation",), "thread"),
        ("compute", ("verifier_kind",), "trust_me"),
        ("compute", ("verification_config", "expected"), [200]),
        ("compute", ("unknown",), 1),
        ("http", ("egress", "profile"), "open"),
        ("http", ("egress", "allowed_methods"), ["BREW"]),
        ("http", ("template", "method"), ...),
        ("http", ("template", "url_template"), "https://a b"),
        ("http", ("template", "headers", "X A"), "a"),
        ("http", ("template", "headers", "X-A"), "a\r\nB: c"),
        ("http", ("secrets",), {"a": "b"}),
        ("http", ("secrets", 0, "name"), ...),
        ("http", ("secrets", 0, "required"), "yes"),
        ("http", ("secrets", 0, "inject", "format"), "Bearer"),
        ("http", ("secrets", 0, "inject", "fromat"), "{value}"),
        ("http", ("secrets", 0, "inject", "header"), ...),
        ("http", ("verifier_kind",), "fs_hash_"),
        ("files", ("fs", "allowed_operations"), ["chmod"]),
        ("files", ("fs", "path_pointer"), "path"),
        ("files", ("fs", "max_file_bytes"), 0),
    ],
)
def test_what_the_reader_refuses_by_form_the_schema_refuses_too(
    kind: str, path: tuple[str | int, ...], value: Any
) -> None:
    document = with_change(kind, path, value)
    is_of_a_schema = "request_schema" in path and isinstance(value, dict)
    assert problems_of(document) or is_of_a_schema  # a schema is judged as a whole, later
    assert not VALIDATOR.is_valid(document)


@pytest.mark.parametrize(
    ("verifier", "config", "is_good"),
    [
        (None, {}, True),
        ("none", {"expected": [200]}, False),
        ("http_status", {"expected": [200, "2xx"]}, True),
        ("http_status", {"expected": []}, False),
        ("http_status", {"expected": ["200"]}, False),
        ("http_status", {"schema": {}}, False),
        ("fs_hash", {"content_pointer": "/text"}, True),
        ("fs_hash", {"content_pointer": "text"}, False),
        ("response_schema", {"schema": {"type": "object"}}, True),
        ("response_schema", {"schema": 1}, False),
    ],
)
def test_what_a_verifier_may_be_told_depends_on_its_kind(
    verifier: str | None, config: dict[str, Any], is_good: bool
) -> None:
    document = {**KINDS["compute"], "verifier_kind": verifier, "verification_config": config}
    assert VALIDATOR.is_valid(document) is is_good
    assert (problems_of(document) == []) is is_good


def fields_of(form: Any) -> Any:
    """Every place of the schema where a field stands: (path, form)."""
    for name, inner in form.get("properties", {}).items():
        yield (name,), inner
        for path, deeper in fields_of(inner.get("items", inner) if isinstance(inner, dict) else {}):
            yield ((name, 0, *path) if "items" in inner else (name, *path)), deeper


FIELDS = [path for path, _ in fields_of(SCHEMA)]
VALUES: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, 0, 1, -1, 1.5, 10**16, "", "a", "http", "1.0.0", "a:b", "GET", "/a", "none", "process", "builtin:a",
     "https://a.example/", "{value}", "X-A", "a b", "ä", "x" * 5000, [], ["a"], ["a", "a"], [1], ["http"], ["write"],
     {}, {"a": "b"}, {"type": "object"}, [{}], [{"name": "a"}]],
)  # fmt: skip


@given(st.sampled_from(sorted(KINDS)), st.sampled_from(FIELDS), VALUES)
def test_reader_and_schema_agree_about_any_field(kind: str, path: tuple[str | int, ...], value: Any) -> None:
    try:
        document = with_change(kind, path, value)
    except (KeyError, IndexError, TypeError):
        return
    problems = list(map(str, problems_of(document)))
    schemas = {"request_schema", "response_schema", "schema"}
    if VALIDATOR.is_valid(document):
        assert [problem for problem in problems if not NOT_A_MATTER_OF_FORM.search(problem)] == []
    elif not schemas & set(path):
        assert problems, list(VALIDATOR.iter_errors(document))


def test_the_command_prints_it() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "supervisor.cli", "schema", "manifest"], capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert msgspec.json.decode(done.stdout) == msgspec.json.decode(msgspec.json.encode(SCHEMA))
