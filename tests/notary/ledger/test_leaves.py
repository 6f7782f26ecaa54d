"""Leaves of intents: canonical JSON of the row, and of nothing that only looks like it."""

import hashlib
from typing import Any

import pytest
import rfc8785

from ipc.texts.canonical import NotCanonical
from notary.ledger.leaves import INTENT_COLUMNS, intent_leaf

ROW: dict[str, Any] = {name: f"é {name}" for name in INTENT_COLUMNS} | {"approval_id": None, "context": b"context"}


def leaf(**changes: Any) -> bytes:
    """The leaf of the row with other values."""
    return intent_leaf(tuple((ROW | changes).values()))


@pytest.mark.parametrize("context", [b"context", None])
def test_the_leaf_of_an_intent_is_canonical_json_with_its_context_as_a_hash(context: bytes | None) -> None:
    members = {name: ROW[name] for name in INTENT_COLUMNS if name not in ("grant_jws", "context")}
    hashed = None if context is None else "sha256:" + hashlib.sha256(context).hexdigest()
    assert leaf(context=context) == rfc8785.dumps(
        members | {"grant": ROW["grant_jws"], "context_hash": hashed}  # docs/evidence.md
    )


@pytest.mark.parametrize("name", INTENT_COLUMNS[:-1])
@pytest.mark.parametrize("other", [b"hello", "\ud800", 2**60])
def test_bytes_in_the_place_of_a_text_are_no_leaf(name: str, other: object) -> None:
    """A changed file could have there what an encoder would write as the text that was there before."""
    with pytest.raises(NotCanonical):
        leaf(**{name: other})


def test_a_number_in_the_place_of_a_text_makes_another_leaf() -> None:
    assert leaf(plan_hash=1.0) == leaf(plan_hash=1) != leaf(plan_hash="1")
