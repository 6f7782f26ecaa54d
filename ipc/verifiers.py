"""Every kind of verifier, declared once: its configuration, the import that it needs, and what it keeps to look again.

Derived from `VERIFIERS`: the checks of manifests and their JSON Schema (frontend/manifests), what the notary accepts of
a worker (notary/ledger/conclusion.py), what is kept with an intent, and why an operator can't have it verified again.
The functions that judge run in workers and are registered in workers/verifiers/verify.py.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

import msgspec

from ipc.expected import CONTENT_POINTER, PATH_POINTER, FileToLeave, NotExpected, expected_file
from ipc.plan import Plan

MAX_PATH_CHARACTERS = 4096
JUDGED: Final = frozenset({"verified", "verification_failed"})
"""Outcomes of a success that a function judges."""


class PointerField(msgspec.Struct, frozen=True):
    """A JSON pointer to a text of the request that every request must have."""

    name: str
    default: str
    is_path: bool = False
    """It names the file that the action writes: the default is `fs.path_pointer`, and no other is accepted."""


class SchemaField(msgspec.Struct, frozen=True):
    """A JSON Schema for the result. Without it `io.response_schema` is used; a manifest must have one of the two."""

    name: str


class ValueField(msgspec.Struct, frozen=True):
    """Any other JSON value: `form` is its JSON Schema for editors, `rule` completes `must be …`."""

    name: str
    form: Mapping[str, Any]
    is_valid: Callable[[object], bool]
    rule: str


ConfigField: TypeAlias = PointerField | SchemaField | ValueField


class VerifierKind(msgspec.Struct, frozen=True, kw_only=True):
    """One kind: it judges successes, or it has the one outcome `declared`. It keeps what it needs to look again, or
    `cannot_look` says why it can't."""

    config: tuple[ConfigField, ...] = ()
    """Fields of the manifest's `verification_config`."""
    needs_import: str | None = None
    """An entry of the manifest's `required_imports`, without which the host would never see the effect."""
    declared: str | None = None
    keep: Callable[[Plan, Mapping[str, Any]], FileToLeave] | None = None
    """Make what the verifier compares with when it looks again. Raises NotExpected."""
    cannot_look: str | None = None

    @property
    def outcomes(self) -> frozenset[str]:
        """The verification outcomes that a success can have."""
        return JUDGED if self.declared is None else frozenset({self.declared})


_STATUS_CLASSES = ("1xx", "2xx", "3xx", "4xx", "5xx")
_STATUSES_FORM = {
    "type": "array",
    "minItems": 1,
    "items": {"anyOf": [{"enum": list(_STATUS_CLASSES)}, {"type": "integer", "minimum": 100, "maximum": 599}]},
}


def _are_statuses(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(map(_is_status, value))


def _is_status(item: object) -> bool:
    return item in _STATUS_CLASSES or (type(item) is int and 100 <= item <= 599)


VERIFIERS: Final[Mapping[str, VerifierKind]] = {
    "none": VerifierKind(declared="skipped", cannot_look="the action has no verifier"),
    "unverifiable": VerifierKind(
        declared="unverifiable_declared", cannot_look="the action declares that its effect can't be verified"
    ),
    "http_status": VerifierKind(
        config=(ValueField("expected", _STATUSES_FORM, _are_statuses, "a list of statuses (201) and classes (2xx)"),),
        needs_import="http",
        cannot_look="it judges the answers that the host saw, which are lost; "
        "to ask again would send the request again",
    ),
    "fs_hash": VerifierKind(
        config=(
            PointerField("path_pointer", PATH_POINTER, is_path=True),
            PointerField("content_pointer", CONTENT_POINTER),
        ),
        needs_import="fs",
        keep=expected_file,
    ),
    "response_schema": VerifierKind(
        config=(SchemaField("schema"),), cannot_look="it judges what the provider answered, which is lost"
    ),
}
"""By the manifest's `verifier_kind`. The first one is the default."""
DEFAULT_VERIFIER: Final = next(iter(VERIFIERS))


def kept_file(plan: Plan) -> FileToLeave | None:
    """The file that is kept with the intent of a call for its verifier to look at again; None if it can't look."""
    kind = VERIFIERS.get(plan.verifier_kind)
    if kind is None or kind.keep is None:
        return None
    try:
        config = msgspec.json.decode(plan.verification_config or "{}", type=dict[str, Any])
        file = kind.keep(plan, config)
    except (NotExpected, msgspec.ValidationError):
        return None
    return None if len(file.path) > MAX_PATH_CHARACTERS else file
