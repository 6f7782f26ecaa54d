"""The answer of a witness, and the verdict on it."""

from typing import Final, NamedTuple, Protocol

from ipc.operations.witnesses import ToCosign

COSIGNED: Final = "cosigned"
INVALID: Final = "invalid"
"""An answer that does not hold."""
INCONSISTENT: Final = "inconsistent"
"""The witness knows a log that this one does not continue: one of the two was restored from a copy or rewritten."""
REFUSED: Final = "refused"
UNREACHED: Final = "unreached"
OUTCOMES: Final = (COSIGNED, INVALID, INCONSISTENT, REFUSED, UNREACHED)
"""The outcomes of a request, as metrics count them."""


class Reply(NamedTuple):
    """`status` is the HTTP status, None without an answer; `lines` is the body of a 200, `told` the size in a 409;
    `problem` is a sentence of the gateway."""

    status: int | None = None
    lines: str = ""
    told: int | None = None
    problem: str = ""


class WitnessRequests(Protocol):
    """Makes requests to one witness (frontend/witnesses/submission.py)."""

    async def submit(self, asked: ToCosign) -> Reply:
        """Have it cosign this. Raises nothing but Cancelled."""


class NotCosigned(NamedTuple):
    """Why a witness has not cosigned: one of OUTCOMES, and a sentence."""

    outcome: str
    problem: str


_REFUSALS: Final = {
    400: NotCosigned(REFUSED, "it takes this for no request (400)"),
    403: NotCosigned(REFUSED, "it does not trust the key that signs the checkpoints of this log (403)"),
    404: NotCosigned(REFUSED, "it does not know this log, or nothing is served there (404)"),
    422: NotCosigned(INCONSISTENT, "what it has cosigned is not the beginning of this log (422)"),
}


def judged(reply: Reply, asked: ToCosign) -> NotCosigned | None:
    """The problem with an answer; None for an answer with signature lines to check, and for a 409 with a size from
    which a consistency proof exists."""
    if reply.problem:
        return NotCosigned(UNREACHED if reply.status is None else INVALID, reply.problem)
    if reply.status == 200:
        return None
    if reply.status != 409:
        return _REFUSALS.get(reply.status or 0) or NotCosigned(REFUSED, f"it answered {reply.status}")
    if reply.told is None:
        return NotCosigned(INVALID, "it answered 409 and did not say which size it knows")
    if reply.told > asked.size:
        return NotCosigned(
            INCONSISTENT, f"it has cosigned {reply.told} entries of this log, which has {asked.size}: the log was cut"
            " or put back, or the witness is wrong",
        )  # fmt: skip
    if reply.told == asked.old_size:
        return NotCosigned(INCONSISTENT, f"it knows another log of {reply.told} entries by this name (409)")
    return None
