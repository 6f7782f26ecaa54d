"""No call is opened again under the id of an intent that was sealed."""

from pathlib import Path

import pytest

from ipc.operations.evidence import ReadCheckpoint
from notary.ledger import intents
from tests.notary.running import Running
from tests.notary.samples import NOW, make_open, record_call
from tests.notary.sealing.sealed_ledger import AGE, seal_age, write_calls
from tests.support.asking import Told

OF_THAT_TIME = f"{int(NOW * 1000) >> 16:08x}-{int(NOW * 1000) & 0xFFFF:04x}-7"
"""The beginning of an id that was made at NOW."""


def of(tail: int, beginning: str = OF_THAT_TIME) -> str:
    return f"intent_{beginning}abc-8000-{tail:012x}"


@pytest.fixture
def sealed(notary: Running, tmp_path: Path) -> Running:
    """A ledger with three sealed intents: two of that time, and one whose id says a much later one."""
    write_calls(notary, NOW)
    notary.clock.time = NOW + 7200  # of the checkpoints of an hour one is kept
    for intent_id in (of(5), of(7), of(1, "fffffff0-0000-7")):
        notary.front.ask(make_open(intent_id=intent_id))
    notary.front.ask(ReadCheckpoint())
    for age in (1, 2):
        write_calls(notary, NOW + age * AGE)
    notary.stop()
    seal_age(notary, tmp_path / "segments", 1)
    notary.start()
    assert notary.stored("SELECT count(*) FROM intents WHERE intent_id = ?", of(5)) == [0]
    return notary


@pytest.mark.parametrize("intent_id", [of(5), of(7), of(1, "fffffff0-0000-7")])
def test_a_sealed_id_opens_no_call(sealed: Running, intent_id: str) -> None:
    with pytest.raises(Told) as told:
        sealed.front.ask(make_open(intent_id=intent_id))
    assert told.value.problem == "refused"


def test_an_id_that_said_a_later_time_makes_no_other_id_known(sealed: Running) -> None:
    record_call(sealed.front)
    with sealed.stranger() as ledger:
        given = [of(6), of(9), of(1, "fffffff0-0000-7"), of(2, "fffffff0-0000-7")]
        known = [one for one in given if intents.is_known(ledger, one)]
        assert known == [of(6), of(1, "fffffff0-0000-7")]
        assert intents.known_among(ledger, given) == set(known)


def test_a_sealed_ledger_keeps_few_ids(sealed: Running) -> None:
    covering, alone = (sealed.stored("SELECT intent_id FROM sealed_intents WHERE covers = ?", one) for one in (1, 0))
    assert covering == [of(7)]
    assert of(1, "fffffff0-0000-7") in alone
