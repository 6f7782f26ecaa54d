"""The same with the ledger in a PostgreSQL, and rows that are empty afterwards."""

import pytest

from tests.notary.backends.conftest import frozen
from tests.notary.backends.postgres.test_kills import collected  # noqa: F401 - what ends here leaves things open
from tests.notary.backends.redis.test_erasing import (  # noqa: F401 - what holds for one ledger holds for the other
    WANTED,
    denied_call,
    refused_and_asked_again,
    test_a_notary_that_ends_here_has_erased_all_with_its_event_or_nothing,
    test_an_erasure_without_its_store_is_refused_by_name_and_can_be_asked_again,
    test_nothing_is_left_in_the_store,
    test_values_age_there_too,
)
from tests.notary.running import Running
from tests.support.postgres_server import PostgresServer

pytestmark = [
    pytest.mark.large,
    pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.mark.usefixtures("patient_backends")
def test_rows_have_neither_value_nor_salt_afterwards(
    notary: Running, postgres_server: PostgresServer, database: str
) -> None:
    denied_call(notary)
    notary.front.ask(WANTED)
    rows = postgres_server.ask("SELECT DISTINCT value, salt, erased_by FROM kept_values", database=database)
    ((value, salt, erased_by),) = rows
    assert (value, salt) == (None, None)
    assert erased_by is not None


def test_an_erasure_without_its_ledger_is_refused_by_name_and_can_be_asked_again(
    notary: Running, postgres_server: PostgresServer
) -> None:
    denied_call(notary)
    refused_and_asked_again(notary, frozen(postgres_server), "ledger")
