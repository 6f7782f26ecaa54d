"""EraseKept and calls without an event of their end: values of an unknown outcome are erased, those of a running call
stay until it ends. However many there are, of one trace too, repeated operations reach them all."""

from ipc.evidence.kept_values import KeptValue, KeptValues
from ipc.operations.erasing import ErasedKept, EraseKept
from notary.operations.erasing import AT_ONCE
from tests.notary.lost import OVER, lost_call
from tests.notary.operations.test_erase_kept import LEFT, OF_PERSON, erase, erase_all, has_bytes
from tests.notary.running import Running, walk_of
from tests.notary.samples import ERASED, call_event, make_open, make_resolution


def test_values_of_a_call_whose_outcome_is_unknown_are_erased_and_its_later_end_verifies(notary: Running) -> None:
    intent_id = lost_call(notary, kept=OF_PERSON)
    assert erase(notary, principal="uid:1000") == ErasedKept(0, 1, None)
    assert notary.stored(LEFT) == [2]
    notary.clock.time += OVER
    assert erase(notary, principal="uid:7") == ErasedKept(0, 0, None)
    assert erase(notary, principal="uid:1000", before=notary.clock.time - OVER) == ErasedKept(0, 0, None)
    assert erase(notary, principal="uid:1000") == ErasedKept(2, 0, None)
    commitments = notary.last_event()["change"]["commitments"]
    notary.front.ask(make_resolution(intent_id, "unknown"))
    notary.stop()
    assert has_bytes(notary) == []
    assert sorted(notary.last_event()["kept"].values()) == sorted(commitments)
    notary.start()
    assert walk_of(notary).intact


def test_an_erasure_of_one_call_reaches_what_has_no_end(notary: Running) -> None:
    held = call_event(trace_id="trc_same")
    lost_call(notary, event={"trace_id": "trc_same"}, kept=OF_PERSON)
    lost_call(notary, event={"trace_id": "trc_other"}, kept=OF_PERSON)
    notary.front.ask(make_open(event=held))
    notary.clock.time += OVER
    assert erase(notary, event_id=notary.last_event()["event_id"]) == ErasedKept(2, 0, None)
    assert notary.stored(LEFT) == [2]


def erase_call(notary: Running, event_id: str) -> list[ErasedKept]:
    """Erase the call of an event, with as many operations as that takes; the answer to each."""
    answers, after = list[ErasedKept](), 0
    while len(answers) < 50:
        answer = erase(notary, event_id=event_id, after=after)
        assert answer is not None
        answers.append(answer)
        if answer.next is None:
            return answers
        after = answer.next
    raise AssertionError(f"it comes to no end: {answers[-3:]}")


def test_an_erasure_of_one_call_reaches_each_event_of_a_trace_that_its_caller_chose(notary: Running) -> None:
    for number in range(70):
        other = {"request_hash": "sha256:" + "e" * 64} if number % 2 else {"principal": "uid:7"}
        notary.front.ask(make_open(kept=OF_PERSON, event=call_event(trace_id="trc_same", **other)))
        notary.front.ask(make_open(kept=OF_PERSON, event=call_event(trace_id="trc_same")))
    answers = erase_call(notary, notary.last_event()["event_id"])
    assert sum(answer.values for answer in answers) == 2 * 70
    assert max(answer.values for answer in answers) <= 2 * AT_ONCE
    assert notary.stored(LEFT) == [2 * 70]


def test_an_erasure_of_one_call_reaches_its_unknown_outcomes_behind_those_of_other_requests(notary: Running) -> None:
    for number in range(AT_ONCE + 40):
        lost_call(notary, event={"trace_id": "trc_same", "request_hash": f"sha256:{number:064x}"}, kept=OF_PERSON)
    for _ in range(AT_ONCE + 2):
        lost_call(notary, event={"trace_id": "trc_same"}, kept=OF_PERSON)
    notary.front.ask(make_open(event=call_event(trace_id="trc_same")))
    notary.clock.time += OVER
    answers = erase_call(notary, notary.last_event()["event_id"])
    assert [answer.values for answer in answers] == [2 * AT_ONCE - 2, 2 * 3]
    assert notary.stored(LEFT) == [2 * (AT_ONCE + 40)]


def test_an_erasure_that_takes_several_operations_counts_a_running_call_once(notary: Running) -> None:
    for _ in range(AT_ONCE + 2):
        lost_call(notary, kept=KeptValues((KeptValue("/a", "1"),)))
    notary.clock.time += OVER
    notary.front.begin(make_open(kept=OF_PERSON))
    assert erase_all(notary) == 1


def test_more_unknown_outcomes_than_one_operation_erases_take_several(notary: Running) -> None:
    for _ in range(AT_ONCE + 2):
        lost_call(notary, kept=KeptValues((KeptValue("/a", "1"),)))
    notary.clock.time += OVER
    first = notary.front.ask(EraseKept(ERASED, principal="uid:1000"))
    assert (first.values, first.next) == (AT_ONCE, 0)
    assert erase_all(notary) == 0
    assert notary.stored(LEFT) == [0]
