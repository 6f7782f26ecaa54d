"""The operator's calls about kept values. No I/O."""

from gateway_client.contract.erasing import ErasedValues
from gateway_client.operating.calls import OperatorCalls
from gateway_client.wire.decoding import decode
from gateway_client.wire.exchange import path_of
from gateway_client.wire.flows import Flow


class EvidenceCore(OperatorCalls):
    """Every method gives a flow of one call and its typed result."""

    def erase_evidence(
        self,
        reason: str,
        *,
        event_id: str | None = None,
        principal: str | None = None,
        before: str | None = None,
        after: int = 0,
    ) -> Flow[ErasedValues]:
        """Erase the kept values of the call that an event tells of, or of a principal's calls (before an ISO 8601
        time). With `next` in the answer there is more: ask again with it as `after`. Raises NotFound."""
        named = {"event_id": event_id, "principal": principal, "before": before}
        body = {name: value for name, value in named.items() if value is not None}
        answer = yield from self.change(
            "POST", path_of("v1", "admin", "evidence", "erase"), {**body, "reason": reason, "after": after}
        )
        return decode(ErasedValues, answer.json(), "erased values")
