"""A PostgreSQL that is silent, or whose lock others keep: a call waits for it once, and for no longer than it may."""

import pytest

from tests.notary.backends.conftest import frozen
from tests.notary.backends.postgres.test_faults import breaks_at_commit, check_fault, comes_back
from tests.notary.backends.redis.test_faults import told
from tests.notary.running import Running, walk_of
from tests.notary.samples import make_note
from tests.support.postgres_server import PostgresServer

pytestmark = pytest.mark.large


def test_nothing_is_answered_meanwhile_and_the_ledger_comes_back_by_itself(
    notary: Running, postgres_server: PostgresServer
) -> None:
    check_fault(notary, frozen(postgres_server))


def test_a_unit_whose_end_others_hide_behind_their_lock_is_not_answered(
    notary: Running, postgres_server: PostgresServer, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with postgres_server.connect(database) as other:

        def lock() -> None:
            other.execute("BEGIN")
            other.execute("SELECT number FROM turn FOR UPDATE")

        breaks_at_commit(notary, monkeypatch, is_done=False, then=lock)
        assert told(notary, make_note()) == "ledger"
        other.execute("ROLLBACK")
    comes_back(notary)
    assert walk_of(notary).total_events == 1
