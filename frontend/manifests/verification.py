"""Section `verification_config`, read and checked by the declaration of its verifier (ipc/verifiers.py).

A verifier with a configuration that it does not understand would never confirm anything, so the manifest is refused
when it is loaded.
"""

from collections.abc import Iterator
from typing import Any

from frontend.manifests.fields import Section
from frontend.manifests.manifest import Manifest
from frontend.manifests.sections import POINTER, SCHEMA_FORM
from ipc.verifiers import VERIFIERS, ConfigField, PointerField, SchemaField, ValueField


def verification(top: Section, kind: str) -> dict[str, Any]:
    """The section, checked for the verifier `kind`."""
    section = top.section("verification_config")
    if section is None:
        return {}
    for field in VERIFIERS[kind].config:
        _check_field(section, field)
    section.refuse_unknown()
    return top.mapping("verification_config") or {}


def planned_config(manifest: Manifest) -> dict[str, Any]:
    """The configuration that goes into a plan: a file is verified where the action writes it."""
    config = manifest.verification_config
    if manifest.files is None:
        return config
    return dict.fromkeys(_path_fields(manifest), manifest.files.path_pointer) | config


def _path_fields(manifest: Manifest) -> Iterator[str]:
    for field in VERIFIERS[manifest.verifier_kind].config:
        if isinstance(field, PointerField) and field.is_path:
            yield field.name


def _check_field(section: Section, field: ConfigField) -> None:
    match field:
        case PointerField(name, default):
            section.text(name, POINTER, default)
        case SchemaField(name):
            section.mapping(name, SCHEMA_FORM)
        case ValueField(name, form, is_valid, rule):
            value = section.plain(name, form)
            if value is not None and not is_valid(value):
                section.report.wrong(
                    section.line_of(name), section.field(name), value, f"must be {rule}", "Correct it."
                )
