from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontend.files.problems import Report
from frontend.manifests.fields import MOST_UNKNOWN
from frontend.manifests.reading import MAX_FILE_BYTES, manifest_of, read_bytes, read_file
from ipc.plan import CallLimits
from tests.frontend.actions.conftest import Read

MINIMAL = "action_id: a\nversion: 1.0.0\nprovider_module_digest: builtin:echo\n"


def test_the_defaults_are_the_documented_ones(read_text: Read) -> None:
    manifest, problems = read_text(MINIMAL)
    assert problems == []
    assert manifest is not None
    assert manifest.risk_level == "high"
    assert manifest.required_scopes == ("tools:call",)
    assert manifest.required_imports == ()
    assert manifest.limits == CallLimits(fuel=10_000_000, memory_mb=64, timeout_seconds=30.0, max_io_calls=10)
    assert manifest.io.max_request_bytes == 65_536
    assert manifest.io.max_response_bytes == 1_048_576
    assert manifest.egress.profile == "none"
    assert manifest.verifier_kind == "none"
    assert manifest.isolation == "pooled"
    assert not manifest.preview
    assert manifest.profile == "compute"


def test_every_field_is_read(read_text: Read) -> None:
    text = """
action_id: Pay.transfer-2
version: 2.1.0-rc.1+b7
description: "Moves money.\\nSlowly."
tags: [bank, eu:west]
provider_module_digest: sha256:{digest}
required_imports: [http, log, clock]
required_scopes: [tools:call, bank:write]
risk_level: critical
declared_side_effects: [http_write, bank.transfer]
resource_limits: {{fuel: 5, memory_mb: 6, timeout_seconds: 0.5, max_io_calls: 0}}
io:
  request_schema: {{type: object, properties: {{to: {{type: string}}}}, required: [to]}}
  response_schema: {{type: object}}
  max_request_bytes: 10
  max_response_bytes: 20
egress: {{profile: proxy_allowlist, allowed_domains: [bank.example, "*.bank.example"], allowed_methods: [GET, PUT]}}
secrets:
- name: bank_token
  required: false
  inject: {{header: X-Token, format: "t={{value}}"}}
  domains: ["*.bank.example", bank.example]
- {{name: other}}
- {{name: key, inject: {{query: key}}}}
- {{name: password, inject: {{basic: {{username: alice}}}}}}
verifier_kind: response_schema
verification_config: {{schema: {{enum: [1, null]}}}}
template:
  method: PUT
  url_template: https://bank.example/{{to}}
  headers: {{X-Kind: fixed, X-To: "{{to}}"}}
  body_template: ["{{to}}"]
isolation: process
preview: true
""".format(digest="0f" * 32)
    manifest, problems = read_text(text, has_proxy=True)
    assert [str(problem) for problem in problems] == []
    assert manifest is not None
    shown = msgspec.json.decode(msgspec.json.encode(manifest))
    assert shown["limits"] == {"fuel": 5, "memory_mb": 6, "timeout_seconds": 0.5, "max_io_calls": 0}
    assert shown["secrets"] == [
        {"name": "bank_token", "required": False, "way": {"way": "header", "header": "X-Token", "format": "t={value}"},
         "domains": ["*.bank.example", "bank.example"]},
        {"name": "other", "required": True, "way": None, "domains": []},
        {"name": "key", "required": True, "way": {"way": "query", "parameter": "key"}, "domains": []},
        {"name": "password", "required": True, "way": {"way": "basic", "username": "alice"}, "domains": []},
    ]  # fmt: skip
    assert shown["template"]["headers"] == [["X-Kind", "fixed"], ["X-To", "{to}"]]
    assert shown["egress"]["allowed_domains"] == ["bank.example", "*.bank.example"]
    assert shown["verification_config"] == {"schema": {"enum": [1, None]}}
    assert (manifest.risk_level, manifest.isolation, manifest.version) == ("critical", "process", "2.1.0-rc.1+b7")
    assert manifest.preview
    assert manifest.module_line == 6


def http_action(**changes: str) -> str:
    fields = {"provider_module_digest": "builtin:http", "required_imports": "[http]"} | changes
    kept = [line for line in MINIMAL.splitlines() if not line.startswith(tuple(fields))]
    rows = (f"{name}: {value}" for name, value in fields.items())
    egress = "egress: {profile: direct_allowlist, allowed_domains: [a.example], allowed_methods: [GET]}"
    return "\n".join((*kept, egress, *rows, ""))


@pytest.mark.parametrize(
    ("changes", "isolation"),
    [
        ({}, "shared"),
        ({"required_imports": "[log, http, clock]"}, "shared"),
        ({"isolation": "pooled"}, "pooled"),
        ({"isolation": "shared"}, "shared"),
        ({"isolation": "process"}, "process"),
        ({"isolation": "null"}, "shared"),
        ({"provider_module_digest": f"sha256:{'0f' * 32}"}, "pooled"),
        ({"resource_limits": "{memory_mb: 64}"}, "shared"),
        ({"resource_limits": "{memory_mb: 65}"}, "pooled"),
    ],
)
def test_calls_of_the_built_in_http_provider_share_a_worker_unless_the_manifest_says_otherwise(
    read_text: Read, changes: dict[str, str], isolation: str
) -> None:
    manifest, problems = read_text(http_action(**changes))
    assert [str(problem) for problem in problems] == []
    assert manifest is not None
    assert manifest.isolation == isolation


def test_a_module_that_is_not_built_in_has_no_http_or_much_memory_can_not_share_a_worker(read_text: Read) -> None:
    for text in (
        http_action(provider_module_digest=f"sha256:{'0f' * 32}", isolation="shared"),
        http_action(resource_limits="{memory_mb: 65}", isolation="shared"),
        f"{MINIMAL}\nisolation: shared\n",
    ):
        manifest, problems = read_text(text)
        assert manifest is None
        (problem,) = problems
        assert problem.field == "isolation"
        assert (
            "isolation = shared is for built-in modules with the import http alone, and with memory_mb of at most 64."
            in str(problem)
        )


def test_every_problem_of_a_file_is_told_at_once_with_its_line_and_mend(read_text: Read) -> None:
    text = """action_id: -bad
version: 1.0
provider_module_digest: builtin:Http
required_imports: [htpt]
risk_level: extreme
resource_limits:
  fuel: 0
  memory: 3
tagz: [a]
secrets:
- inject: {header: "A B"}
"""
    manifest, problems = read_text(text)
    assert manifest is None
    assert [(problem.line, problem.field) for problem in sorted(problems)] == [
        (1, "action_id"),
        (2, "version"),
        (3, "provider_module_digest"),
        (4, "required_imports[0]"),
        (5, "risk_level"),
        (7, "resource_limits.fuel"),
        (8, "resource_limits.memory"),
        (9, "tagz"),
        (11, "secrets[0].inject.header"),
        (11, "secrets[0].inject.header"),
        (11, "secrets[0].name"),
    ]
    assert all(problem.file == "action.yaml" and problem.mend for problem in problems)


def test_problems_read_like_sentences(read_text: Read) -> None:
    _, problems = read_text(MINIMAL + "resource_limits: {fuel: 0}\nrisklevel: low\n")
    assert sorted(map(str, problems)) == [
        "action.yaml:4  resource_limits.fuel = 0: must be 1 or more. The default is 10000000.",
        'action.yaml:5  unknown field "risklevel" at the top. Did you mean risk_level?',
    ]


@pytest.mark.parametrize(
    ("line", "field"),
    [
        ("version: v1.0.0", "version"),
        ("version: 01.0.0", "version"),
        ("description: 5", "description"),
        ('description: "a\\u202eb\\x00"', "description"),
        ("tags: a", "tags"),
        ("tags: [a, a]", "tags[1]"),
        ("tags: [1]", "tags[0]"),
        ("required_scopes: [call]", "required_scopes[0]"),
        ("required_imports: [fs, fs]", "required_imports[1]"),
        ("declared_side_effects: [HTTP]", "declared_side_effects[0]"),
        ("resource_limits: 5", "resource_limits"),
        ("resource_limits: {memory_mb: 0}", "resource_limits.memory_mb"),
        ("resource_limits: {memory_mb: 1025}", "resource_limits.memory_mb"),
        ("resource_limits: {timeout_seconds: 0}", "resource_limits.timeout_seconds"),
        ("resource_limits: {timeout_seconds: 1e4}", "resource_limits.timeout_seconds"),
        ("resource_limits: {max_io_calls: -1}", "resource_limits.max_io_calls"),
        ("resource_limits: {fuel: '5'}", "resource_limits.fuel"),
        ("resource_limits: {fuel: 1.5}", "resource_limits.fuel"),
        ("resource_limits: {fuel: true}", "resource_limits.fuel"),
        ("io: {max_request_bytes: 0}", "io.max_request_bytes"),
        ("io: {max_request_bytes: 1048577}", "io.max_request_bytes"),
        ("io: {max_response_bytes: 0}", "io.max_response_bytes"),
        ("io: {request_schema: [1]}", "io.request_schema"),
        ("verifier_kind: trust_me", "verifier_kind"),
        ("verification_config: [1]", "verification_config"),
        ("isolation: thread", "isolation"),
        ("secrets: {a: b}", "secrets"),
        ("secrets: [{name: a, required: yes}]", "secrets[0].required"),
    ],
)
def test_a_field_out_of_bounds_is_a_problem_of_that_field(read_text: Read, line: str, field: str) -> None:
    text = "\n".join(row for row in MINIMAL.splitlines() if not row.startswith(line.partition(":")[0])) + f"\n{line}\n"
    manifest, problems = read_text(text)
    assert manifest is None
    assert field in [problem.field for problem in problems]


@pytest.mark.parametrize(
    "digest", ["", "sha256:abc", "sha256:" + "A" * 64, "md5:" + "a" * 64, "builtin:", "builtin:../x"]
)
def test_a_module_is_named_by_its_whole_digest_or_a_built_in_name(read_text: Read, digest: str) -> None:
    _, problems = read_text(f"action_id: a\nversion: 1.0.0\nprovider_module_digest: '{digest}'\n")
    assert [problem.field for problem in problems] == ["provider_module_digest"]


@pytest.mark.parametrize("action_id", ["a" * 257, "ä", "a/b", "_a", "a b", ".a", "a\\nb"])
def test_an_action_id_is_fit_for_urls(read_text: Read, action_id: str) -> None:
    _, problems = read_text(f'action_id: "{action_id}"\nversion: 1.0.0\nprovider_module_digest: builtin:echo\n')
    assert [problem.field for problem in problems] == ["action_id"]


def test_what_is_missing_is_named_with_what_to_add(read_text: Read) -> None:
    _, problems = read_text("description: nothing else\n")
    assert [problem.field for problem in problems] == ["action_id", "version", "provider_module_digest"]
    assert str(problems[1]).endswith("version is missing. Add it: a semantic version such as 1.0.0.")


def test_problems_show_values_short_and_in_ascii(read_text: Read) -> None:
    _, problems = read_text(MINIMAL.replace("1.0.0", '"\\u202e' + "x" * 500 + '"'))
    assert len(str(problems[0])) < 200
    assert "\u202e" not in str(problems[0])


def test_a_file_that_is_too_large_or_not_utf8_or_unreadable_is_a_problem(tmp_path: Path) -> None:
    report = Report("f")
    assert read_bytes(b"#" * (MAX_FILE_BYTES + 1), report) is None
    assert read_bytes(b"a: 1\nb: \xff\n", report) is None
    assert read_file(tmp_path, report) is None
    assert [problem.line for problem in report.problems] == [0, 2, 0]


FIELDS = [
    "action_id", "version", "provider_module_digest", "required_imports", "io", "request_schema", "properties",
    "required", "type", "template", "url_template", "body_template", "headers", "egress", "profile", "secrets",
    "allowed_domains", "inject", "header", "fs", "path_pointer", "allowed_operations", "allowed_paths",
    "resource_limits", "name", "$ref", "$schema", "$id",
]  # fmt: skip
TEXTS = [
    "http",
    "fs",
    "object",
    "string",
    "#/properties",
    "https://a.example/{x}",
    "/path",
    "{x}",
    "write",
    "**",
    "GET",
    "1.0.0",
]
values: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats(allow_nan=False)
    | st.sampled_from(TEXTS)
    | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS) | st.text(max_size=4), inner, max_size=5)
    ),
    max_leaves=25,
)


@given(st.dictionaries(st.sampled_from(FIELDS), values, max_size=10))
def test_any_mapping_gives_a_manifest_or_problems_and_nothing_else(value: dict[str, Any]) -> None:
    report = Report("f.yaml")
    tree = read_bytes(msgspec.json.encode(value), report)
    assert tree is None or manifest_of(tree, report, has_proxy=False) is not None or report.problems


def test_of_very_many_unknown_fields_the_first_are_named_and_the_others_counted(read_text: Read) -> None:
    _, problems = read_text(MINIMAL + "".join(f"unknown{number}:\n" for number in range(12_000)))
    assert len(problems) == MOST_UNKNOWN + 1
    assert str(problems[-1]) == (
        'action.yaml:104  11900 more unknown fields at the top, from "unknown100" on. Remove them.'
    )


def test_very_many_problems_and_headers_are_no_more_work_each() -> None:
    headers = "".join(f"    x{number}: a\n" for number in range(12_000))
    template = f"template:\n  method: GET\n  url_template: https://a.example\n  headers:\n{headers}    X7: b\n"
    report = Report("action.yaml")
    tree = read_bytes((MINIMAL + template + "tags: []\n" * 5000).encode(), report)
    assert tree is not None
    assert len(report.problems) == 4999
    manifest_of(tree, report, has_proxy=False)
    assert "the header X7 stands here twice." in [one.message for one in report.problems]
