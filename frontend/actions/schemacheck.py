"""Whether a JSON Schema of a manifest can be used here: draft 2020-12, whole in itself, linear patterns.

jsonschema judges it against the meta-schema, so that every mistake has its place; the compiler that will be used has
the last word. Never fetches anything.
"""

from collections.abc import Iterator
from typing import Any

import jsonschema

from frontend.actions.problems import Report, shown
from frontend.actions.schema import SchemaRefused, Validator
from frontend.actions.yamltree import Node, Path, dotted

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_MOST_PROBLEMS = 20
_DATA_KEYWORDS = frozenset({"const", "default", "enum", "examples"})
"""Below these stand values, not schemas."""
_SCHEMAS_BY_NAME = frozenset({"$defs", "dependentSchemas", "patternProperties", "properties"})
"""Below these stand names that people chose, then schemas."""


def check_schema(schema: dict[str, Any], path: Path, tree: Node, report: Report) -> bool:
    """Note what keeps `schema`, which stands at `path` of `tree`, from being used; True when nothing does."""
    before = len(report.problems)
    for place, message, mend in _problems(schema):
        where = (*path, *place)
        report.add(tree.line_at(where), dotted(where), f"{dotted(where)}: {message}.", mend)
    if len(report.problems) == before:
        try:
            Validator(schema)
        except SchemaRefused as error:
            line = tree.line_at(path)
            report.add(
                line, dotted(path), f"{dotted(path)} does not compile: {shown(str(error))}.", "Correct the schema."
            )
    return len(report.problems) == before


def _problems(schema: dict[str, Any]) -> Iterator[tuple[Path, str, str]]:
    if schema.get("$schema", DIALECT) not in (DIALECT, DIALECT + "#"):
        yield ("$schema",), "must be JSON Schema draft 2020-12", f"Remove it, or write {DIALECT}."
        return
    yield from _references(schema, ())
    meta = jsonschema.Draft202012Validator(jsonschema.Draft202012Validator.META_SCHEMA)
    try:
        for index, error in enumerate(meta.iter_errors(schema)):
            if index >= _MOST_PROBLEMS:
                return
            yield tuple(error.absolute_path), f"{shown(error.instance)} is not valid ({error.validator})", _mend(error)
    except RecursionError:
        yield (), "is nested too deeply", "Flatten it."


def _mend(error: jsonschema.ValidationError) -> str:
    keyword = next((step for step in reversed(error.absolute_path) if isinstance(step, str)), "this place")
    return f"See JSON Schema 2020-12 on {keyword}."


def _references(schema: Any, path: Path) -> Iterator[tuple[Path, str, str]]:
    """References that leave the schema, and identifiers that would move the base of those inside."""
    if isinstance(schema, list):
        for index, item in enumerate(schema):
            yield from _references(item, (*path, index))
    if not isinstance(schema, dict):
        return
    for keyword, value in schema.items():
        if keyword in _DATA_KEYWORDS:
            continue
        here = (*path, keyword)
        if keyword in _SCHEMAS_BY_NAME and isinstance(value, dict):
            for name, item in value.items():
                yield from _references(item, (*here, name))
            continue
        if keyword in {"$ref", "$dynamicRef"} and isinstance(value, str) and not value.startswith("#"):
            yield here, "refers to something outside this schema", "Copy it into $defs and refer to #/$defs/NAME."
        if keyword == "$id" and isinstance(value, str) and path:
            yield here, "stands inside the schema", "Remove it; refer to #/$defs/NAME."
        yield from _references(value, here)
