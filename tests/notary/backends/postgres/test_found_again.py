"""A PostgreSQL that failed counts as found again once it has taken what a full disk would have refused."""

import pytest

from ipc.operations.leases import ReadEpoch
from ipc.operations.status import ReadLedger
from tests.notary.backends.postgres.test_faults import read_only, told
from tests.notary.running import Running
from tests.notary.samples import make_note, make_open
from tests.support.gateway import wait_for
from tests.support.postgres_server import PostgresServer

pytestmark = pytest.mark.large


def test_a_look_that_finds_room_for_its_rows_has_found_the_ledger_again(
    notary: Running, postgres_server: PostgresServer, database: str
) -> None:
    assert notary.thread is not None
    with read_only(postgres_server, database):
        wait_for(lambda: told(notary, make_note()) == "ledger", "the fault")
    wait_for(lambda: told(notary, ReadLedger()) == "", "the ledger")
    assert not notary.thread.state.is_failing, "it is not written to any more only to look"


def test_a_unit_that_takes_no_room_does_not_count_as_recovery(notary: Running) -> None:
    assert notary.thread is not None
    state = notary.thread.state
    state.is_failing = True
    assert notary.front.ask(ReadEpoch()) == 0
    assert state.is_failing, "a full disk would have let it pass"
    assert notary.front.ask(make_note()) is None
    assert not state.is_failing
    state.is_failing = True
    notary.front.begin(make_open())
    assert not state.is_failing, "the intent of a call takes room, too"
