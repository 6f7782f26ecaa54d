"""The same with the ledger in a PostgreSQL."""

import pytest

from tests.notary.backends.postgres.test_kills import collected  # noqa: F401 - what ends here leaves things open
from tests.notary.backends.redis.test_order import (  # noqa: F401 - what holds for one ledger holds for the other
    test_a_unit_in_doubt_is_in_neither_when_the_ledger_went_on_and_the_notary_ended,
    test_a_unit_that_ends_here_is_in_both_and_is_answered_again,
    test_a_unit_that_ends_here_is_in_neither,
    test_a_unit_that_was_undone_by_one_that_ended_is_undone_once,
)

pytestmark = [
    pytest.mark.large,
    pytest.mark.usefixtures("patient_backends"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
