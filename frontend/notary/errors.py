"""Why the notary gave no answer, and how that is told in the codes of the interface."""

from frontend.errors import errors_as


class NotaryUnavailable(Exception):
    """The notary can't be asked, or could not write or read. `part` is what failed: store, budget, approvals, ledger,
    keys, or notary where nothing was answered. `is_begun`: a call was begun, and its end could not be written."""

    def __init__(self, cause: str, part: str = "notary", *, is_begun: bool = False) -> None:
        super().__init__(cause)
        self.part = part
        self.is_begun = is_begun


class NotarySilent(NotaryUnavailable):
    """There was no answer, or none that makes sense: the operation may be done all the same."""


class NotaryRefused(Exception):
    """The notary works, and what was asked contradicts what it holds. Nothing was written."""


def notary_errors_as(code: str) -> errors_as:
    """`with notary_errors_as("ledger_unavailable"):` raises GateError with this code where the notary could not, or
    would not, do what was asked. ClockError passes: it has a code of its own."""
    return errors_as(code, NotaryUnavailable, NotaryRefused)
