"""The errors of the interface when the notary gives no answer."""

import pytest

from frontend.clock import ClockError
from frontend.errors import GateError
from frontend.notary.errors import NotaryRefused, NotarySilent, NotaryUnavailable, notary_errors_as


@pytest.mark.parametrize("error", [NotaryUnavailable("full", "ledger"), NotarySilent("gone"), NotaryRefused("no such")])
def test_whatever_the_notary_could_not_do_is_the_code_of_the_one_who_asked(error: Exception) -> None:
    with pytest.raises(GateError) as refusal, notary_errors_as("ledger_unavailable"):
        raise error
    assert (refusal.value.code, refusal.value.cause) == ("ledger_unavailable", str(error))


def test_a_clock_that_was_set_back_keeps_the_code_of_its_own() -> None:
    with pytest.raises(ClockError), notary_errors_as("ledger_unavailable"):
        raise ClockError("set back")
