"""Errors that name the sealed segment in which evidence may lie that the ledger lacks."""

from collections.abc import Sequence

from frontend.clock import parse_iso
from frontend.errors import GateError
from frontend.notary.client import NotaryClient
from frontend.notary.errors import notary_errors_as
from ipc.operations.sealed import ListSegments, SealedSegment
from ipc.texts.identifiers import made_at


async def missing(notary: NotaryClient, code: str, identifier: str) -> GateError:
    """The error for an id that the ledger does not know: `code`, or `sealed`. Raises GateError ledger_unavailable."""
    if made_at(identifier) is None:
        return GateError(code)
    found = next((one for one in await segments_of(notary) if one.has_room_for(identifier)), None)
    return GateError(code) if found is None else _sealed(found)


async def refuse_sealed(notary: NotaryClient, trace_id: str | None, before: float | None) -> None:
    """No event was found of this call, or before this time. Raises GateError sealed if a segment may have some, and
    ledger_unavailable."""
    if trace_id is not None and (error := await missing(notary, "not_found", trace_id)).code == "sealed":
        raise error
    segments = () if before is None else await segments_of(notary)
    if before is not None and (found := next((one for one in segments if before <= parse_iso(one.until)), None)):
        raise _sealed(found)


async def segments_before(notary: NotaryClient, before: float | None) -> tuple[str, ...]:
    """Names of the segments that may have something from before a time; None: all. Raises GateError
    ledger_unavailable."""
    names = []
    for one in await segments_of(notary):
        names.append(one.segment)
        if before is not None and before <= parse_iso(one.until):
            break
    return tuple(names)


async def segments_of(notary: NotaryClient) -> Sequence[SealedSegment]:
    """All sealed segments, oldest first. Raises GateError ledger_unavailable."""
    with notary_errors_as("ledger_unavailable"):
        return await notary.ask(ListSegments())


def _sealed(found: SealedSegment) -> GateError:
    return GateError("sealed", segment=found.segment, message=f"it lies in {found.segment}, if it ever was")
