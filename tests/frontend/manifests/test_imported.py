from collections.abc import Callable
from typing import Any

import pytest

from frontend.manifests.imported import ImportedOperation

MINIMAL = "action_id: a\nversion: 1.0.0\nprovider_module_digest: builtin:echo\n"
DIGEST = "sha256:" + "0f" * 32


def test_a_manifest_says_which_operation_it_was_made_from(read_text: Callable[..., Any]) -> None:
    section = f"imported: {{from: openapi, api: Billing, operation: POST /refunds, digest: '{DIGEST}'}}\n"
    manifest, problems = read_text(MINIMAL + section)
    assert problems == []
    assert manifest.imported == ImportedOperation("openapi", "Billing", "POST /refunds", DIGEST)
    assert read_text(MINIMAL)[0].imported is None


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [("from", "rumour", "imported.from"), ("digest", "sha256:1", "imported.digest"), ("more", "x", "unknown field"),
     ("operation", '"a\\nb"', "imported.operation"), ("api", "''", "imported.api")],
)  # fmt: skip
def test_a_section_in_another_form_is_a_problem(
    read_text: Callable[..., Any], field: str, value: str, said: str
) -> None:
    fields = {"from": "openapi", "api": "Billing", "operation": "POST /refunds", "digest": DIGEST} | {field: value}
    section = "imported:\n" + "".join(f"  {name}: {one}\n" for name, one in fields.items())
    manifest, problems = read_text(MINIMAL + section)
    assert manifest is None
    assert said in str(problems[0])
