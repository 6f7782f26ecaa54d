"""Section `imported`: the operation of a published description that a manifest was made from.

Ties a manifest to its source: `gateway import … --check` compares the digest with the description of today. Has no
part in plans, and is never believed about anything else.
"""

import msgspec

from frontend.manifests.fields import Section, TextRule

SOURCES = ("openapi",)
MAX_NAME = 300
FILL_IN = "FILL-IN-"
"""How a value begins that a description does not have, and that a person has to fill in."""

_NAME = TextRule(r"[^\x00-\x1f\x7f-\x9f]+", f"text without control characters, at most {MAX_NAME}", MAX_NAME)
_DIGEST = TextRule(r"sha256:[0-9a-f]{64}", "sha256: and 64 lower-case hex digits", 71)


class ImportedOperation(msgspec.Struct, frozen=True):
    """`digest` covers the operation with all that it refers to, as it was when the manifest was made."""

    source: str
    """One of SOURCES: the kind of description."""
    api: str
    """The description's title: a folder may have manifests of several."""
    operation: str
    """Method and path, such as `POST /refunds`."""
    digest: str


def imported(top: Section) -> ImportedOperation | None:
    """The section; None if the manifest was written by hand."""
    section = top.section("imported")
    if section is None:
        return None
    operation = ImportedOperation(
        source=section.choice("from", SOURCES),
        api=section.text("api", _NAME),
        operation=section.text("operation", _NAME),
        digest=section.text("digest", _DIGEST),
    )
    section.refuse_unknown()
    return operation
