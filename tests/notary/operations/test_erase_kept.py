"""EraseKept: values and salts go, commitments stay, and no byte of a value is left in the files."""

import msgspec
import pytest

from ipc.backends.store import ApprovalRecord
from ipc.evidence.kept_values import KeptValue, KeptValues
from ipc.operations.erasing import ErasedKept, EraseKept
from tests.notary.running import Running, walk_of
from tests.notary.samples import (
    ERASED,
    call_event,
    make_approval,
    make_claim,
    make_denial,
    make_hold,
    make_note,
    make_open,
)
from tests.support.asking import Told

SECRET = "Hildegard-of-Bingen"
OF_PERSON = KeptValues((KeptValue("/name", f'"{SECRET}"'), KeptValue("/amount", "100")), "{name}")
LEFT = "SELECT count(*) FROM kept_values WHERE value IS NOT NULL"


def erase(notary: Running, **asked: object) -> ErasedKept | None:
    answer: ErasedKept | None = notary.front.ask(EraseKept(ERASED, **asked))  # type: ignore[arg-type]
    return answer


def has_bytes(notary: Running) -> list[str]:
    """Names of the files of the state folder that hold the value."""
    # The WAL first: what it holds comes to the file before it is cut.
    files = [file for file in sorted(notary.path.parent.rglob("*"), reverse=True) if file.is_file()]
    return [file.name for file in files if SECRET.encode() in file.read_bytes()]


def test_the_values_of_one_call_are_erased_and_the_ledger_still_verifies(notary: Running) -> None:
    notary.front.ask(make_open(kept=OF_PERSON))
    ended = notary.last_event()
    notary.front.ask(make_open(kept=OF_PERSON, event=call_event(trace_id="trc_other")))
    assert erase(notary, event_id=ended["event_id"]) == ErasedKept(2, 0, None)
    told = notary.last_event()
    assert told["reason"] == "asked for"
    assert told["change"]["count"] == 2
    assert sorted(told["change"]["commitments"]) == sorted(ended["kept"].values())
    assert notary.stored(LEFT) == [2]
    notary.restart()
    assert walk_of(notary).intact
    assert erase(notary, event_id=ended["event_id"]) == ErasedKept(0, 0, None)


def erase_all(notary: Running) -> int:
    """Erase all of the usual principal; how many calls wait for a person."""
    answer, waiting = erase(notary, principal="uid:1000"), 0
    while answer is not None and answer.next is not None:
        waiting += answer.waiting
        answer = erase(notary, principal="uid:1000", after=answer.next)
    assert answer is not None
    return waiting + answer.waiting


def test_no_file_holds_a_byte_of_what_was_erased(notary: Running) -> None:
    approval = with_request(make_approval())
    notary.front.ask(make_hold(approval, kept=OF_PERSON))
    notary.front.ask(make_claim(approval))
    notary.front.ask(msgspec.structs.replace(make_denial(approval), kept=OF_PERSON))
    for number in range(300):  # pages of the table are split, and the journal goes round
        notary.front.ask(make_open(kept=OF_PERSON))
        if number % 50 == 0:
            notary.front.ask(make_note())
    assert has_bytes(notary)
    assert erase_all(notary) == 0
    notary.stop()
    assert has_bytes(notary) == []
    assert notary.stored(LEFT) == [0]
    notary.start()
    assert walk_of(notary).intact


def test_a_call_that_waits_for_a_person_keeps_its_values_until_it_ends(notary: Running) -> None:
    approval = with_request(make_approval())
    notary.front.ask(make_hold(approval, kept=OF_PERSON))
    assert erase_all(notary) == 1
    assert notary.stored(LEFT) == [2]
    notary.front.ask(make_claim(approval))
    notary.front.ask(msgspec.structs.replace(make_denial(approval), kept=OF_PERSON))
    assert erase_all(notary) == 0
    assert notary.stored("SELECT * FROM kept_approvals") == []
    notary.stop()
    assert has_bytes(notary) == []


def with_request(approval: ApprovalRecord) -> ApprovalRecord:
    """One whose request has the value."""
    return msgspec.structs.replace(approval, body=approval.body.replace('"request":"', f'"request":"{SECRET} '))


def test_values_of_another_principal_and_of_later_calls_stay(notary: Running) -> None:
    notary.front.ask(make_open(kept=OF_PERSON, event=call_event(principal="uid:7")))
    notary.clock.time += 10
    notary.front.ask(make_open(kept=OF_PERSON))
    assert erase(notary, principal="uid:1000", before=notary.clock.time) == ErasedKept(0, 0, None)
    assert erase(notary, principal="uid:1000", before=notary.clock.time + 1) == ErasedKept(2, 0, None)
    assert notary.stored(LEFT) == [2]


def test_an_event_that_is_not_there_is_told(notary: Running) -> None:
    assert erase(notary, event_id="evt_none") is None


@pytest.mark.parametrize("asked", [{}, {"event_id": "evt_1", "principal": "uid:1"}])
def test_an_erasure_names_one_event_or_one_principal(notary: Running, asked: dict[str, str]) -> None:
    with pytest.raises(Told):
        erase(notary, **asked)
