"""The two readers of the meta-schema agree: a schema that the compiled one lets pass has no mistake for the other."""

from typing import Any

import jsonschema_rs
from hypothesis import given
from hypothesis import strategies as st

from frontend.manifests.mistakes import mistakes_of

KEYWORDS = (
    "$anchor", "$comment", "$defs", "$dynamicRef", "$id", "$ref", "additionalProperties", "allOf", "anyOf", "const",
    "contains", "contentSchema", "dependentRequired", "dependentSchemas", "deprecated", "enum", "exclusiveMaximum",
    "examples", "format", "if", "items", "maxContains", "maxLength", "minItems", "minimum", "multipleOf", "not",
    "oneOf", "pattern", "patternProperties", "prefixItems", "properties", "propertyNames", "required", "title", "type",
    "unevaluatedItems", "uniqueItems", "x-own",
)  # fmt: skip

scalars = st.sampled_from(
    [0, 1, -1, 1.0, 0.5, -0.0, 2**70, True, False, None, "", "a", "string", "object", "#/$defs/a", "#", "[", "^a$"]
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(("a", *KEYWORDS)), inner, max_size=3),
    max_leaves=12,
)  # fmt: skip
schemas = st.dictionaries(st.sampled_from(KEYWORDS), values, max_size=4)


@given(schemas)
def test_both_readers_of_the_meta_schema_refuse_the_same_schemas(schema: dict[str, Any]) -> None:
    assert jsonschema_rs.meta.is_valid(schema) == (list(mistakes_of(schema)) == [])
