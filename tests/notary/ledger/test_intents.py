"""Intents as they are stored, and their leaves: canonical JSON of the row."""

import hashlib
from typing import Any

import msgspec
import pytest
import rfc8785

from ipc.operations.intents import ListUnresolved
from ipc.texts.canonical import NotCanonical
from notary.ledger.intents import OpenIntent, known_among, row_of
from notary.ledger.leaves import INTENT_COLUMNS, intent_leaf
from tests.notary.running import Running
from tests.notary.samples import call_event, make_open, make_terms

INTENT = OpenIntent("intent_1", "grant_1", "2026-01-01T00:00:00.000Z", call_event(), make_terms(), False, None)


def test_a_row_says_whose_call_it_is_and_of_what() -> None:
    event = INTENT.event
    assert row_of(INTENT, "jws")[:4] == ("intent_1", event.trace_id, event.action_id, event.principal)


@pytest.mark.parametrize("name", ["trace_id", "action_id", "principal"])
def test_the_event_of_a_call_that_does_not_say_whose_it_is_makes_no_intent(name: str) -> None:
    nobodys = msgspec.structs.replace(INTENT, event=call_event(**{name: None}))
    with pytest.raises(ValueError, match="without trace, action or principal"):
        row_of(nobodys, "jws")


def test_ids_in_the_ledger_are_distinguished_from_others(notary: Running) -> None:
    one, other = make_open(), make_open()
    for asked in (one, other):
        notary.front.begin(asked)
    assert len(notary.front.ask(ListUnresolved(9))) == 2  # which has them brought to their table
    with notary.stranger() as connection:
        assert known_among(connection, [one.intent_id, "intent_x"]) == {one.intent_id}
        assert known_among(connection, []) == set()


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
