"""Errors of the notary, and their codes in the interface."""

from frontend.errors import errors_as


class NotaryUnavailable(Exception):
    """The notary can't be asked, or could not write or read. `part` is the part that failed: store, budget, approvals,
    ledger, keys, or notary if it did not answer. `is_begun`: a call was begun, and its end could not be written."""

    def __init__(self, cause: str, part: str = "notary", *, is_begun: bool = False) -> None:
        super().__init__(cause)
        self.part = part
        self.is_begun = is_begun


class NotarySilent(NotaryUnavailable):
    """There was no answer, or one that can't be decoded: the operation may have been performed."""


class NotaryRefused(Exception):
    """The notary works, and the operation contradicts its data: it changed nothing."""


def notary_errors_as(code: str) -> errors_as:
    """`with notary_errors_as("ledger_unavailable"):` raises GateError with this code where the notary could not, or
    would not, do what was asked. ClockError passes: it has a code of its own."""
    return errors_as(code, NotaryUnavailable, NotaryRefused)
