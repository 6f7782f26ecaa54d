"""The mistakes in a JSON Schema that its meta-schema (draft 2020-12) refuses, place by place.

Called only for schemas that the compiled validator has refused; both refuse the same schemas.
"""

from collections.abc import Iterator
from itertools import islice
from typing import Any

import jsonschema

from frontend.files.problems import shown
from frontend.manifests.yamltree import Path

_MOST = 20
_META = jsonschema.Draft202012Validator(jsonschema.Draft202012Validator.META_SCHEMA)


def mistakes_of(schema: dict[str, Any]) -> Iterator[tuple[Path, str, str]]:
    """Place, fault and mend; at most 20. Raises RecursionError."""
    for error in islice(_META.iter_errors(schema), _MOST):
        yield tuple(error.absolute_path), f"{shown(error.instance)} is not valid ({error.validator})", _mend(error)


def _mend(error: jsonschema.ValidationError) -> str:
    keyword = next((step for step in reversed(error.absolute_path) if isinstance(step, str)), "this place")
    return f"See JSON Schema 2020-12 on {keyword}."
