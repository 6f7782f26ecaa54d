"""Authentication of agents and operators: headers -> token -> proof -> epoch.

Combines the parts of frontend/auth. Guarantees that a proof is used only after its signature is verified, and that a
request is refused while clock or notary can't be asked. The notary ensures that a proof is used once: for a call in the
operation that records it, for all other requests with `enter`. Never decides whether a caller may do something.
"""

import msgspec

from frontend.auth.authorization import parse_authorization
from frontend.auth.dpop import DpopVerifier, Proof, replay_key
from frontend.auth.lease import Lease, LeaseVerifier
from frontend.auth.operators import Operators
from frontend.auth.replays import Replays
from frontend.clock import TimeSource
from frontend.errors import GateError
from frontend.http.requests import Request
from frontend.limits.rates import SessionRates
from frontend.notary.client import NotaryClient
from frontend.notary.errors import notary_errors_as
from frontend.notary.in_force import NotaryFacts
from frontend.telemetry.logs import log
from ipc.configuration.roles import OPERATOR_ROLES
from ipc.operations import calls
from ipc.operations.calls import UseProof


class Claim(msgspec.Struct, frozen=True):
    """The claim of a request: a lease that this gateway issued, and a proof that is not yet checked."""

    lease: Lease
    token: str
    proof: str


class Caller(msgspec.Struct, frozen=True):
    """An agent that has proven its lease. `epoch` is the one in force."""

    lease: Lease
    epoch: int


class OperatorCaller(msgspec.Struct, frozen=True):
    """An operator that has proven key and credential."""

    name: str
    jkt: str
    proof_jti: str
    roles: frozenset[str] = frozenset(OPERATOR_ROLES)
    groups: frozenset[str] = frozenset()
    owner: str | None = None

    def require_role(self, roles: frozenset[str]) -> None:
        """Raises GateError role_required unless the operator has one of these roles."""
        if not self.roles & roles:
            needed = " or ".join(role for role in OPERATOR_ROLES if role in roles)
            had = ", ".join(role for role in OPERATOR_ROLES if role in self.roles) or "none"
            message = f"this needs the role {needed}, and operator {self.name} has {had} (`roles` in [[operators]])"
            raise GateError("role_required", message=message)


def asker_of(caller: Caller | OperatorCaller) -> str:
    """The name under which the notary charges this caller's reads."""
    return f"operator {caller.name}" if isinstance(caller, OperatorCaller) else f"principal {caller.lease.principal}"


class Authentication(msgspec.Struct, frozen=True):
    """Checks one request. Every method raises GateError and returns only for callers who are who they say."""

    clock: TimeSource
    notary: NotaryClient
    known: NotaryFacts
    leases: LeaseVerifier
    proofs: DpopVerifier
    operators: Operators
    sessions: SessionRates
    replays: Replays = msgspec.field(default_factory=Replays)

    def now(self) -> float:
        """Trusted time. Raises GateError clock_error."""
        return self.clock.now()

    async def agent(self, request: Request) -> Caller:
        """Authenticate by lease. Codes: all 401, replay_cache_unavailable, clock_error."""
        claim = self.claim(request)
        proof = self.check(request, claim)
        try:
            await self._enter(proof)
        except GateError as error:
            if error.code == "replay_detected":
                self.not_its_own(claim.lease, proof.key)
            raise
        return Caller(claim.lease, self.in_force(claim.lease))

    def claim(self, request: Request) -> Claim:
        """The lease that a request comes with. Its sender has proven nothing yet: for evidence of refusals."""
        token, proof = parse_authorization(request.headers)
        return Claim(self.leases.verify(token), token, proof)

    def check(self, request: Request, claim: Claim) -> calls.ProofRecord:
        """The proof of a claim, once it holds for this request; whether it is new is not known yet.

        Raises TooMuch too, when the session has had its requests of this second: after the signature, so that a caller
        without its key can't use them up, before the notary is asked, so that a flood costs it nothing.
        """
        proof = self._proof(claim.proof, request, claim.token, claim.lease.jkt, self.now())
        key = replay_key(proof.jkt, proof.jti)
        if key in self.replays:  # a copy of a copy: the notary need not be asked again
            raise GateError("replay_detected")
        self.sessions.take(claim.lease.session_id)
        return calls.ProofRecord(key, proof.iat)

    def in_force(self, lease: Lease) -> int:
        """The epoch of a lease, if it is the one in force, and its session was not revoked, as far as this front knows.
        Raises invalid_lease."""
        in_force = self.known.epoch
        if lease.epoch != in_force:  # a store that lost its epoch must not bring revoked leases back
            raise GateError("invalid_lease", cause=f"epoch {lease.epoch} of the lease, {in_force} is in force")
        if lease.session_id in self.known.revoked:
            raise GateError("invalid_lease", cause="the session was revoked by an operator")
        return in_force

    def not_its_own(self, lease: Lease, proof_key: str) -> None:
        """A request turned out to be a copy of an earlier one: it was not this session's to pay for."""
        self._is_copied(lease.session_id, proof_key)

    async def token_holder(self, text: str, token: str, jkt: str, path: str) -> None:
        """Use the proof, made for a POST to `path`, of the holder of a token that is bound to a key.

        Codes: invalid_dpop, replay_detected, replay_cache_unavailable, clock_error. Raises TooMuch, too: a key's
        proofs draw from one bucket, as a session's requests do.
        """
        proof = self.proofs.verify(
            text, method="POST", path=path, access_token=token, expected_jkt=jkt, now=self.now()
        )  # fmt: skip
        key, bucket = replay_key(proof.jkt, proof.jti), f"key {jkt}"
        if key in self.replays:
            raise GateError("replay_detected")
        self.sessions.take(bucket)
        try:
            await self._enter(calls.ProofRecord(key, proof.iat))
        except GateError as error:
            if error.code == "replay_detected":
                self._is_copied(bucket, key)
            raise

    async def operator(self, request: Request, *, may_be_copied: bool = False) -> OperatorCaller:
        """Authenticate by operator credential. Codes: invalid_operator_token, invalid_dpop, replay_detected, …

        `may_be_copied`: while the notary can't say whether the proof is new, signature, key and time are enough.
        """
        token, proof_text = parse_authorization(request.headers)
        now = self.now()
        operator = self.operators.authenticate(token)
        proof = self._proof(proof_text, request, token, operator.dpop_jkt, now)
        try:
            await self._enter(calls.ProofRecord(replay_key(proof.jkt, proof.jti), proof.iat))
        except GateError as error:
            if not (may_be_copied and error.code == "replay_cache_unavailable"):
                raise
            log.warning(
                "an operator's read was allowed while the store is down", operator=operator.name, cause=error.cause
            )
        return OperatorCaller(
            operator.name, proof.jkt, proof.jti, operator.roles, operator.groups, operator.owner
        )  # fmt: skip

    def named_operator(self, request: Request) -> tuple[str | None, str | None]:
        """For a refused request: the operator whose API key it has, and the thumbprint of the key that signed its
        proof, even if no other check holds. None for each that is missing."""
        try:
            token, proof_text = parse_authorization(request.headers)
            return self.operators.authenticate(token).name, self.proofs.signer_of(proof_text)
        except GateError:
            return None, None

    def _proof(self, text: str, request: Request, token: str, jkt: str | None, now: float) -> Proof:
        return self.proofs.verify(
            text, method=request.method, path=request.path, access_token=token, expected_jkt=jkt, now=now
        )

    def _is_copied(self, bucket: str, proof_key: str) -> None:
        self.sessions.give_back(bucket)
        self.replays.add(proof_key)

    async def _enter(self, proof: calls.ProofRecord) -> None:
        """Use a proof once; from then on the epoch in force is known."""
        with notary_errors_as("replay_cache_unavailable"):
            entered = await self.notary.ask(UseProof(proof))
        self.known.note_epoch(entered.epoch)
        if not entered.is_fresh:
            raise GateError("replay_detected")
