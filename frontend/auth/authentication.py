"""Who is asking: headers -> token -> proof -> replay cache -> epoch, for agents and for operators.

The one place where the parts of frontend/auth meet the store. Guarantees that a proof is recorded only after its
signature holds, and that nothing is concluded when clock or store can't be asked. Never decides what a caller may do.
"""

from dataclasses import dataclass

from frontend.auth.authorization import parse_authorization
from frontend.auth.dpop import DpopVerifier, Proof, replay_key
from frontend.auth.epochs import Epochs
from frontend.auth.lease import Lease, LeaseAuthority
from frontend.auth.operators import Operators
from frontend.clock import Clock
from frontend.errors import GateError
from frontend.http.requests import Request
from frontend.limits.rates import SessionRates
from frontend.stores.interface import Store, StoreUnavailable

REPLAY_SECONDS = 180.0
"""How long a proof's jti is remembered: beyond the widest skew a proof may have (docs/decisions.md, "DPoP")."""


@dataclass(frozen=True, slots=True)
class Claim:
    """What a request says of itself: a lease of ours, and a proof that nobody has checked yet."""

    lease: Lease
    token: str
    proof: str


@dataclass(frozen=True, slots=True)
class Caller:
    """An agent that has proven its lease. `epoch` is the one in force."""

    lease: Lease
    epoch: int


@dataclass(frozen=True, slots=True)
class OperatorCaller:
    """An operator that has proven key and credential."""

    name: str
    jkt: str
    proof_jti: str


@dataclass(frozen=True, slots=True)
class Authentication:
    """Checks one request. Every method raises GateError and returns only for callers who are who they say."""

    clock: Clock
    store: Store
    leases: LeaseAuthority
    proofs: DpopVerifier
    operators: Operators
    sessions: SessionRates
    epochs: Epochs

    def now(self) -> float:
        """Trusted time. Raises GateError clock_error."""
        return self.clock.now()

    async def agent(self, request: Request) -> Caller:
        """Authenticate by lease. Codes: all 401, replay_cache_unavailable, clock_error."""
        claim = self.claim(request)
        return await self.admit(claim, self.check(request, claim))

    def claim(self, request: Request) -> Claim:
        """The lease that a request comes with. Whoever sends it has proven nothing yet: for evidence of refusals."""
        token, proof = parse_authorization(request.headers)
        return Claim(self.leases.verify(token), token, proof)

    def check(self, request: Request, claim: Claim) -> Proof:
        """The proof of a claim, once it holds for this request; whether it is new is not known yet.

        Raises TooMuch too, when the session has had its requests of this second: after the signature, so that nobody
        without its key uses them up, before the store is asked, so that a flood costs it nothing.
        """
        proof = self._proof(claim.proof, request, claim.token, claim.lease.jkt, self.now())
        self.sessions.take(claim.lease.session_id)
        return proof

    async def admit(self, claim: Claim, proof: Proof) -> Caller:
        """The caller, once the proof that holds is new, too, and the lease's epoch is in force."""
        lease = claim.lease
        try:
            epoch = await self._record(proof, self.now())
        except GateError as error:
            if error.code == "replay_detected":  # a recorded request, sent again by whoever: not the session's own
                self.sessions.give_back(lease.session_id)
            raise
        if lease.epoch != epoch:  # a store that lost its epoch must not bring revoked leases back
            raise GateError("invalid_lease", cause=f"epoch {lease.epoch} of the lease, {epoch} is in force")
        return Caller(lease, epoch)

    async def operator(self, request: Request) -> OperatorCaller:
        """Authenticate by operator credential. Codes: invalid_operator_token, invalid_dpop, replay_detected, …"""
        token, proof_text = parse_authorization(request.headers)
        now = self.now()
        operator = self.operators.authenticate(token)
        proof = self._proof(proof_text, request, token, operator.dpop_jkt, now)
        await self._record(proof, now)
        return OperatorCaller(operator.name, proof.jkt, proof.jti)

    def _proof(self, text: str, request: Request, token: str, jkt: str | None, now: float) -> Proof:
        return self.proofs.verify(
            text, method=request.method, path=request.path, access_token=token, expected_jkt=jkt, now=now
        )

    async def _record(self, proof: Proof, now: float) -> int:
        try:
            visit = await self.store.check_in(replay_key(proof.jkt, proof.jti), now + REPLAY_SECONDS, now)
        except StoreUnavailable as error:
            raise GateError("replay_cache_unavailable", cause=str(error)) from None
        self.epochs.note(visit.epoch)
        if not visit.is_fresh:
            raise GateError("replay_detected")
        return visit.epoch
