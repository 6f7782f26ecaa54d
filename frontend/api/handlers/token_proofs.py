"""POST /v1/proofs: the proof that came with a request to the edge's `/mcp`."""

from contract.leases import JudgedProof
from frontend.calls.refusals import RefusedRequest
from frontend.contract.annotations import codes
from frontend.errors import GateError
from frontend.http.requests import Request
from frontend.services import Services
from ipc.configuration.identity_origin import DPOP
from ipc.evidence.events import ACTION_CALL


@codes(
    "identity_forbidden", "identity_provider_unavailable", "invalid_dpop", "replay_detected",
    "replay_cache_unavailable", "clock_error", "rate_limit_exceeded",
)  # fmt: skip
async def judge(services: Services, request: Request) -> JudgedProof:
    """Judge a token that is bound to a key, and the proof of its holder.

    For the edge alone, which asks before it answers a request to its `/mcp` under a lease that it holds already. The
    token is in `Authorization: DPoP`, the proof in `Client-DPoP`. A proof counts once.
    """
    try:
        if request.uid not in services.configuration.current.settings.identity.edge_uids:
            raise GateError("identity_forbidden", cause="a proof for /mcp does not come from an edge")
        await services.remote.holder(request.headers)
    except GateError as error:
        await services.refusals.note(RefusedRequest(ACTION_CALL, request.uid, error, {"reason": error.cause}))
        raise
    return JudgedProof(token_binding=DPOP)
