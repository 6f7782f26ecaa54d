"""Section `verification_config`: what each verifier may be told.

A verifier that is told something it does not understand would never confirm anything; that shows here, at load. What
verifiers do with it is the workers' to say.
"""

from typing import Any

from frontend.manifests.fields import Section
from frontend.manifests.sections import POINTER, SCHEMA_FORM

_STATUS_CLASSES = ("1xx", "2xx", "3xx", "4xx", "5xx")
_EXPECTED_FORM = {
    "type": "array",
    "minItems": 1,
    "items": {"anyOf": [{"enum": list(_STATUS_CLASSES)}, {"type": "integer", "minimum": 100, "maximum": 599}]},
}


def verification(top: Section, kind: str) -> dict[str, Any]:
    """The section, checked for the verifier `kind`."""
    section = top.section("verification_config")
    if section is None:
        return {}
    if kind == "http_status":
        _check_expected(section)
    elif kind == "fs_hash":
        section.text("path_pointer", POINTER, "/path")
        section.text("content_pointer", POINTER, "/content")
    elif kind == "response_schema":
        section.mapping("schema", SCHEMA_FORM)
    section.refuse_unknown()
    return top.mapping("verification_config") or {}


def _check_expected(section: Section) -> None:
    expected = section.plain("expected", _EXPECTED_FORM)
    if expected is None:
        return
    items = expected if isinstance(expected, list) else []
    if not items or not all(_is_status(item) for item in items):
        rule = "must be a list of statuses (201) and classes (2xx)"
        section.report.wrong(section.line_of("expected"), section.field("expected"), expected, rule, "Correct it.")


def _is_status(item: object) -> bool:
    return item in _STATUS_CLASSES or (type(item) is int and 100 <= item <= 599)
