"""Whether a JSON Schema of a manifest can be used here: draft 2020-12, whole in itself, patterns safe everywhere.

The meta-schema has its say, with every mistake in its place (frontend/manifests/mistakes.py); the compiler that will be
used has the last word. Never fetches anything.
"""

from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

import jsonschema_rs

from frontend.files.problems import Report, shown
from frontend.manifests.yamltree import Node, Path, dotted
from frontend.schemas.ambiguity import refuse_exponential
from frontend.schemas.pattern import PatternRefused
from frontend.schemas.regexes import parse_pattern
from frontend.schemas.validator import SchemaRefused, Validator
from ipc.texts.pointers import value_at

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_DATA_KEYWORDS = frozenset({"const", "default", "enum", "examples"})
"""Below these stand values, not schemas."""
_SCHEMAS_BY_NAME = frozenset({"$defs", "dependentSchemas", "patternProperties", "properties"})
"""Below these stand names that people chose, then schemas."""


def check_schema(schema: dict[str, Any], path: Path, tree: Node, report: Report) -> bool:
    """Note what keeps `schema`, which stands at `path` of `tree`, from being used; True when nothing does.

    A place inside the schema is shown as a JSON pointer: `io.request_schema#/properties/queue/pattern`.
    """
    before = len(report.problems)
    for place, message, mend in _problems(schema):
        where = dotted(path) + pointer_of(place)
        report.add(tree.line_at((*path, *place)), where, f"{where}: {message}.", mend)
    if len(report.problems) == before:
        try:
            Validator(schema)
        except SchemaRefused as error:
            message = f"{dotted(path)} does not compile: {shown(str(error))}."
            report.add(tree.line_at(path), dotted(path), message, "Correct the schema.")
    return len(report.problems) == before


def pointer_of(place: Path) -> str:
    """A place inside a schema as a fragment (RFC 6901 §6, without its percent-encoding): `#/properties/a~1b`."""
    return "#" + "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in place) if place else ""


def _problems(schema: dict[str, Any]) -> Iterator[tuple[Path, str, str]]:
    if schema.get("$schema", DIALECT) not in (DIALECT, DIALECT + "#"):
        yield ("$schema",), "must be JSON Schema draft 2020-12", f"Remove it, or write {DIALECT}."
        return
    try:
        for place, keyword, value in _keywords(schema, ()):
            yield from _of_reference(schema, place, keyword, value)
            yield from _of_format(place, keyword, value)
            yield from _of_pattern(place, keyword, value)
        if not jsonschema_rs.meta.is_valid(schema):
            # Only now: what tells mistakes apart is as much to import as all else that reads manifests together.
            from frontend.manifests.mistakes import mistakes_of

            yield from mistakes_of(schema)
    except RecursionError:
        yield (), "is nested too deeply", "Flatten it."


def _keywords(schema: Any, path: Path) -> Iterator[tuple[Path, str, Any]]:
    """Every keyword with its place and value, wherever a schema may stand."""
    if isinstance(schema, list):
        for index, item in enumerate(schema):
            yield from _keywords(item, (*path, index))
    if not isinstance(schema, dict):
        return
    for keyword, value in schema.items():
        here = (*path, keyword)
        yield here, keyword, value
        if keyword in _SCHEMAS_BY_NAME and isinstance(value, dict):
            for name, item in value.items():
                yield from _keywords(item, (*here, name))
        elif keyword not in _DATA_KEYWORDS:
            yield from _keywords(value, here)


def _of_reference(schema: Any, place: Path, keyword: str, value: Any) -> Iterator[tuple[Path, str, str]]:
    """References that leave the schema or lead nowhere, and identifiers that would move the base of those inside."""
    if keyword in {"$ref", "$dynamicRef"} and isinstance(value, str):
        if not value.startswith("#"):
            yield place, "refers to something outside this schema", "Copy it into $defs and refer to #/$defs/NAME."
        elif value.startswith("#/") and not _leads_somewhere(schema, unquote(value)):
            yield place, f"refers to {shown(value)}, which is not there", "Correct it, or add what it names."
    if keyword == "$id" and isinstance(value, str) and len(place) > 1:
        yield place, "stands inside the schema", "Remove it; refer to #/$defs/NAME."


def _leads_somewhere(schema: Any, reference: str) -> bool:
    try:
        value_at(schema, reference[1:])
    except LookupError:
        return False
    return True


def _of_format(place: Path, keyword: str, value: Any) -> Iterator[tuple[Path, str, str]]:
    """Formats that the validator does not know, which it would not check in a request."""
    if keyword != "format" or not isinstance(value, str):
        return
    try:
        Validator({"format": value})
    except SchemaRefused:
        yield place, f"{shown(value)} is no format of JSON Schema 2020-12", "Correct it, or use a pattern."


def _of_pattern(place: Path, keyword: str, value: Any) -> Iterator[tuple[Path, str, str]]:
    """Patterns that may not be used (frontend/schemas/regexes.py), as values and as names of `patternProperties`."""
    patterns: list[tuple[Path, str]] = []
    if keyword == "pattern" and isinstance(value, str):
        patterns = [(place, value)]
    elif keyword == "patternProperties" and isinstance(value, dict):
        patterns = [((*place, name), name) for name in value]
    for where, pattern in patterns:
        try:
            refuse_exponential(parse_pattern(pattern))
        except PatternRefused as refused:
            yield where, f"the pattern {shown(pattern)} {refused}, at character {refused.position}", refused.mend
