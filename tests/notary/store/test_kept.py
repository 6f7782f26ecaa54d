"""Ended approvals with their requests, of any store: kept as they were held, bounded by age and bytes, oldest first."""

import msgspec
import pytest

from ipc.approvals import CLAIMED, DENIED, PENDING
from ipc.settings import ApprovalSettings
from notary.backends.sqlite import SqliteDatabase
from notary.store.keeping import TRIMMED_AT_ONCE, KeptBounds, bounds_at, kept_text
from tests.notary.samples import NOW
from tests.notary.store.conftest import UnitOfStore, open_stores, unit_of
from tests.notary.store.test_contract import approval
from tests.support.redis_server import RedisServer

RECORD = approval(state=DENIED, outcome='{"deny_reason":"no"}', principal="a")
SIZE = len(kept_text(RECORD))
ROOMY = KeptBounds(0.0, 1 << 40, 1 << 40)


def keep(unit: UnitOfStore, approval_id: str, ended_at: float, principal: str = "a") -> None:
    with unit() as store:
        store.keep_ended(msgspec.structs.replace(RECORD, approval_id=approval_id, principal=principal), ended_at)


def left(unit: UnitOfStore, *approval_ids: str) -> list[str]:
    with unit() as store:
        return [one for one in approval_ids if store.kept_hold(one) is not None]


def trimmed(unit: UnitOfStore, bounds: KeptBounds) -> int:
    with unit() as store:
        return store.trim_kept(bounds)


def test_an_approval_that_has_ended_is_kept_whole_and_seen_at_once(unit: UnitOfStore) -> None:
    held = approval()
    with unit() as store:
        store.store_hold(held)
        store.move_hold("apr_1", PENDING, CLAIMED, outcome="{}", holder="front-1")
        assert store.kept_hold("apr_1") is None
        ended = store.move_hold("apr_1", CLAIMED, DENIED, outcome='{"deny_reason":"no"}')
        assert ended is not None
        whole = msgspec.structs.replace(ended, body=held.body)
        store.keep_ended(whole, NOW)
        assert store.kept_hold("apr_1") == whole
    with unit() as store:
        assert store.kept_hold("apr_1") == whole
        assert store.hold("apr_1") == ended, "its row has no request"
        assert store.kept_hold("apr_2") is None


def test_an_approval_whose_values_are_erased_is_kept_no_more_and_counts_for_no_bound(unit: UnitOfStore) -> None:
    for number in (1, 2):
        keep(unit, f"apr_{number}", NOW + number)
    with unit() as store:
        store.forget_kept("apr_1")
        store.forget_kept("apr_none")
        assert store.kept_hold("apr_1") is None
    assert left(unit, "apr_1", "apr_2") == ["apr_2"]
    assert trimmed(unit, KeptBounds(0.0, SIZE, SIZE)) == 0
    keep(unit, "apr_1", NOW + 3)
    with unit() as store:
        store.forget_kept("apr_1")
        store.keep_ended(RECORD, NOW + 4)
        assert store.kept_hold("apr_1") == RECORD
    assert left(unit, "apr_1", "apr_2") == ["apr_1", "apr_2"]


def test_an_approval_that_is_kept_and_forgotten_in_one_unit_is_not_there(unit: UnitOfStore) -> None:
    with unit() as store:
        store.keep_ended(RECORD, NOW)
        store.forget_kept(RECORD.approval_id)
        assert store.kept_hold(RECORD.approval_id) is None
    assert left(unit, RECORD.approval_id) == []


def test_nothing_is_erased_within_the_bounds(unit: UnitOfStore) -> None:
    keep(unit, "apr_1", NOW)
    assert trimmed(unit, ROOMY) == 0
    assert trimmed(unit, KeptBounds(NOW - 1, SIZE, SIZE)) == 0
    assert left(unit, "apr_1") == ["apr_1"]


def test_requests_that_are_too_old_are_erased(unit: UnitOfStore) -> None:
    keep(unit, "apr_1", NOW)
    keep(unit, "apr_2", NOW + 1)
    assert trimmed(unit, ROOMY._replace(since=NOW)) == 1
    assert left(unit, "apr_1", "apr_2") == ["apr_2"]


def test_the_oldest_of_a_principal_with_too_many_bytes_are_erased_and_no_other_one_s(unit: UnitOfStore) -> None:
    keep(unit, "apr_1", NOW, "b")
    for number in (4, 2, 3):  # not in the order of their names
        keep(unit, f"apr_{number}", NOW + 10 - number, "a")
    assert trimmed(unit, ROOMY._replace(bytes_of_principal=2 * SIZE)) == 1
    assert left(unit, "apr_1", "apr_2", "apr_3", "apr_4") == ["apr_1", "apr_2", "apr_3"]
    keep(unit, "apr_5", NOW + 20, "a")
    assert trimmed(unit, ROOMY._replace(bytes_of_principal=2 * SIZE)) == 1
    assert left(unit, "apr_1", "apr_2", "apr_3", "apr_5") == ["apr_1", "apr_2", "apr_5"]


def test_the_oldest_of_all_are_erased_when_all_have_too_many_bytes(unit: UnitOfStore) -> None:
    for number, principal in enumerate("abc"):
        keep(unit, f"apr_{number}", NOW + number, principal)
    assert trimmed(unit, KeptBounds(0.0, SIZE, 2 * SIZE)) == 1
    assert left(unit, "apr_0", "apr_1", "apr_2") == ["apr_1", "apr_2"]


def test_much_is_erased_a_little_at_a_time(unit: UnitOfStore) -> None:
    for number in range(TRIMMED_AT_ONCE + 3):
        keep(unit, f"apr_{number}", NOW + number)
    over = ROOMY._replace(bytes_of_principal=0)
    assert [trimmed(unit, over) for _ in range(3)] == [TRIMMED_AT_ONCE, 3, 0]
    keep(unit, "apr_again", NOW)
    assert trimmed(unit, KeptBounds(0.0, SIZE + 10, SIZE + 10)) == 0, "what was erased counts no more"


def test_one_that_ends_again_since_its_row_was_put_back_is_kept_and_counts_once(unit: UnitOfStore) -> None:
    keep(unit, "apr_1", NOW)
    keep(unit, "apr_1", NOW + 5)
    assert trimmed(unit, KeptBounds(NOW, SIZE, SIZE)) == 0
    assert left(unit, "apr_1") == ["apr_1"]


@pytest.mark.parametrize("principal", ["", "a b", "1 2", "line\nbreak", "uid:1000"])
def test_the_name_of_a_principal_may_be_any_text(unit: UnitOfStore, principal: str) -> None:
    keep(unit, "apr_1", NOW, principal)
    assert trimmed(unit, ROOMY._replace(bytes_of_principal=1)) == 1
    assert trimmed(unit, KeptBounds(0.0, 0, 0)) == 0


def test_the_bounds_follow_the_settings() -> None:
    settings = ApprovalSettings(max_pending_bytes=100, max_pending_bytes_per_principal=10, keep_days=2)
    assert bounds_at(NOW, settings) == KeptBounds(NOW - 2 * 24 * 3600, 20, 200)
    assert ApprovalSettings().keep_days == 30


@pytest.mark.large
def test_in_redis_a_unit_that_the_ledger_does_not_have_has_kept_nothing(
    redis_server: RedisServer, database: SqliteDatabase
) -> None:
    stores = open_stores(redis_server, "kept-undone")
    with database.unit() as connection:
        store = stores.open(connection)
        store.keep_ended(RECORD, NOW)
        store.apply(1)
    stores.recover(0, None)
    with unit_of(stores, database) as later:
        assert later.kept_hold(RECORD.approval_id) is None
        assert later.trim_kept(KeptBounds(NOW, 0, 0)) == 0
    stores.client.close()
