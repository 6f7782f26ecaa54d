"""The agent's calls as flows: leases, execute, poll, receipts. No I/O; the clients are in gateway_client/agents.py.

Guarantees that an execute is sent again only when the gateway has refused it before dispatch, or under its idempotency
key (gateway_client/calling/idempotency.py), each time with a fresh proof, and that at most one lease is being asked for
at a time.
"""

from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

from gateway_client.calling.core import Core, Limits, Repeat, encode_json, json_call
from gateway_client.calling.idempotency import KeyedExecute, Repeater, key_header, new_key
from gateway_client.calling.leases import RENEW_SECONDS, WAIT_SECONDS, Lease, Leases, LeaseTerms, lease_of
from gateway_client.contract.leases import KEYS_HEADER
from gateway_client.contract.leases import Lease as IssuedLease
from gateway_client.contract.previews import CallPreview
from gateway_client.contract.receipts import Receipt
from gateway_client.errors import (
    AlreadyExecuted,
    ApprovalDenied,
    ApprovalEnded,
    ApprovalPending,
    AuthenticationFailed,
    GatewayError,
    ProtocolViolation,
    RateLimited,
    Unavailable,
    Unreachable,
)
from gateway_client.keys import ProofKey
from gateway_client.results import CallPage, Executed, Held, Jwks, Poll, Session, executed_of
from gateway_client.wire.address import Address
from gateway_client.wire.decoding import decode
from gateway_client.wire.exchange import Headers, ReceivedAnswer, UnprovenCall, path_of
from gateway_client.wire.flows import Alone, Clock, Flow, Pause
from gateway_client.wire.proofs import Prover
from gateway_client.wire.trace_context import trace_headers

OnHeld = Callable[[Held], None]
POLL_SECONDS = 2.0
"""Between two polls where the gateway does not say."""
WAIT_TIMEOUT = 360.0
"""A hold lives for five minutes; then its call may still take its own time."""

LEASE_IS_OVER = "the lease that the call was held under has run out"


class AgentCore(Core):
    """Every method gives a flow and its typed result, and raises the exceptions of gateway_client/errors.py."""

    def __init__(self, address: Address, key: ProofKey, terms: LeaseTerms, limits: Limits, clock: Clock) -> None:
        """Raises ValueError for a token that would be sent in plain text."""
        if terms.token is not None and address.is_read_on_the_way:
            raise ValueError("a token is sent over https alone, or over plain http to this host")
        super().__init__(limits, clock)
        self.leases = Leases(terms)
        self._key = key
        self._prover = Prover(key, address.public_base_url, clock.now)
        self._repeater = Repeater(self._proven, clock)

    def renew(self) -> Flow[Session]:
        """Begin another session now, with a new lease and a new budget."""
        deadline = self.deadline()
        lease: Lease = yield Alone(self._renewed(self.leases.current, deadline, Repeat.READ), self.left(deadline))
        return lease.session

    def execute(
        self, action_id: str, request: object = None, *, waits: bool, timeout: float | None = None,
        on_held: OnHeld | None = None, idempotency_key: str | None = None,
    ) -> Flow[Executed | Held]:  # fmt: skip
        """Call an action. `waits`: stay until an operator has decided; `on_held` hears at once what is waited for."""
        seconds = self.limits.execute_timeout if timeout is None else timeout
        end = self.deadline(WAIT_TIMEOUT if waits and timeout is None else seconds)
        key = new_key() if idempotency_key is None else idempotency_key
        keyed = KeyedExecute(
            UnprovenCall(
                "POST", path_of("v1", "actions", action_id, "execute"), "",
                encode_json({} if request is None else request), (*key_header(key), *trace_headers()),
            ),
            key, idempotency_key is None, end,
            min(seconds, self.limits.execute_timeout) if waits else seconds,
            WAIT_SECONDS if waits else self.leases.terms.seconds_left,
        )  # fmt: skip
        try:
            answer, lease = yield from self._repeater.execute(keyed)
            if answer.status not in (200, 202):
                return (yield from self._executed_before(answer.error(), action_id))
        except GatewayError as error:
            error.idempotency_key = keyed.key
            raise
        if answer.status == 200:
            return decode(Executed, answer.json(), "result")
        held = decode(Held, answer.json(), "hold")
        self.leases.remember(held.approval_id, lease, self.clock.now())
        if not waits:
            return held
        if on_held is not None:
            on_held(held)
        return (yield from self._outcome(held, action_id, lease, end))

    def preview(self, action_id: str, request: object = None) -> Flow[CallPreview]:
        """The decision on a call that is not made, and what it would send; it costs no budget.

        Raises Denied policy_denied where the action lets no agent preview it, Invalid schema_violation.
        """
        body = encode_json({} if request is None else request)
        call = UnprovenCall("POST", path_of("v1", "actions", action_id, "preview"), "", body)
        answer, _ = yield from self._proven(call, self.deadline(), Repeat.BEFORE_DISPATCH)
        return decode(CallPreview, answer.expect(200).json(), "preview")

    def outcome(self, held: Held, action_id: str, timeout: float | None = None) -> Flow[Executed]:
        """Wait until an operator has decided a held call, and return its result (default 360 s).

        `action_id` is that of the call. Raises as execute with a wait does; ApprovalPending also once the lease that
        the call was held under has run out.
        """
        lease = self.leases.of_hold(held.approval_id, self.clock.now())
        end = self.deadline(WAIT_TIMEOUT if timeout is None else timeout)
        return (yield from self._outcome(held, action_id, lease, end))

    def poll(self, approval_id: str) -> Flow[Poll]:
        """Where a held call stands. Asks with the session that the call was made in, as long as its lease lives.

        Raises NotFound, Denied approval_session_mismatch.
        """
        lease = self.leases.of_hold(approval_id, self.clock.now())
        return (yield from self._poll(approval_id, self.deadline(), lease))

    def receipt(self, receipt_id: str) -> Flow[Receipt]:
        """A receipt, of whatever session. Raises NotFound."""
        call = UnprovenCall("GET", path_of("v1", "receipts", receipt_id))
        answer, _ = yield from self._proven(call, self.deadline(), Repeat.READ)
        return decode(Receipt, answer.expect(200).json(), "receipt")

    def calls(self, limit: int = 20, after: str | None = None) -> Flow[CallPage]:
        """The calls of this principal and key in all sessions, newest first, with their states.

        `after`: `next` of the page before, or a trace id. After a lost connection: did it happen?
        """
        query = urlencode({"limit": limit} | ({} if after is None else {"after": after}))
        answer, _ = yield from self._proven(UnprovenCall("GET", "/v1/calls", query), self.deadline(), Repeat.READ)
        return decode(CallPage, answer.expect(200).json(), "calls")

    def lease_keys(self) -> Flow[Jwks]:
        """The public keys of leases."""
        answer = yield from self.ask(UnprovenCall("GET", "/.well-known/jwks.json"), self.deadline())
        return decode(Jwks, answer.expect(200).json(), "lease keys")

    def _poll(self, approval_id: str, deadline: float, lease: Lease | None) -> Flow[Poll]:
        call = UnprovenCall("GET", path_of("v1", "approvals", approval_id, "poll"))
        answer, _ = yield from self._proven(call, deadline, Repeat.READ, pinned=lease)
        return decode(Poll, answer.expect(200).json(), "approval")

    def _outcome(self, held: Held, action_id: str, lease: Lease | None, end: float) -> Flow[Executed]:
        """Poll until the hold is decided, then return the result. `lease` is None once it has run out."""
        try:
            if lease is None:
                raise ApprovalPending("approval_pending", reason=LEASE_IS_OVER)
            return (yield from self._decided(held, action_id, lease, end))
        except GatewayError as error:
            error.approval_id = held.approval_id
            error.trace_id = error.trace_id or held.trace_id
            raise

    def _decided(self, held: Held, action_id: str, lease: Lease, end: float) -> Flow[Executed]:
        poll = yield from self._decision(held, lease, end)
        if poll.state == "denied":
            raise ApprovalDenied("approval_denied", reason=poll.deny_reason)
        if poll.state != "approved" or poll.outcome == "failed":
            code = "approval_expired" if poll.state == "expired" else "approval_failed"
            raise ApprovalEnded(code, reason=poll.reason)
        if poll.receipt_id is None:
            raise ProtocolViolation("the approval names no receipt")
        try:  # it has run: fetch its result even when the wait ends within this second
            receipt = yield from self.receipt(poll.receipt_id)
        except GatewayError as problem:  # which is about the receipt, and would tell of a call that has not run
            reason = f"its receipt can't be read: {problem.code}"
            raise AlreadyExecuted("already_executed", reason=reason, receipt_id=poll.receipt_id) from problem
        return executed_of(receipt, action_id, held.trace_id, held.approval_id)

    def _decision(self, held: Held, lease: Lease, end: float) -> Flow[Poll]:
        """Asking goes on while the gateway is away or busy, also where an edge or a proxy says so: the hold is there
        when it comes back."""
        while True:
            wait = POLL_SECONDS
            try:
                poll = yield from self._poll(held.approval_id, min(end, self.deadline()), lease)
                if poll.is_decided:
                    return poll
                wait = min(max(poll.retry_after_seconds or POLL_SECONDS, 0.1), 60.0)
            except AuthenticationFailed as error:
                if error.code != "lease_expired":
                    raise
                raise ApprovalPending("approval_pending", reason=LEASE_IS_OVER) from None
            except GatewayError as error:
                if not isinstance(error, RateLimited | Unreachable) and (error.status or 0) < 500:
                    raise
                wait = max(error.retry_after or 0.0, POLL_SECONDS)
            left = end - self.clock.monotonic()
            if left <= wait:
                reason = "nobody has decided in the time that was given"
                raise ApprovalPending("approval_pending", reason=reason)
            yield Pause(wait)

    def _executed_before(self, error: GatewayError, action_id: str) -> Flow[Executed]:
        """The result of a call that was executed by an earlier attempt, from its receipt. Raises any other error."""
        if not isinstance(error, AlreadyExecuted) or error.receipt_id is None:
            raise error
        try:
            receipt = yield from self.receipt(error.receipt_id)
        except GatewayError as problem:
            raise error from problem
        approval = receipt.approval
        trace_id = receipt.trace_id or error.trace_id or ""
        return executed_of(receipt, action_id, trace_id, None if approval is None else approval.approval_id)

    def _proven(
        self,
        call: UnprovenCall,
        deadline: float,
        repeat: Repeat,
        seconds: float = RENEW_SECONDS,
        pinned: Lease | None = None,
    ) -> Flow[tuple[ReceivedAnswer, Lease]]:
        """The answer to a call under a lease, and the lease. A pinned lease is never replaced.

        A lease that the gateway refuses is replaced once: authentication comes before anything else is done. An error
        says whether the gateway of the lease knows idempotency keys.
        """
        lease = pinned or (yield from self._lease(deadline, seconds))
        try:
            answer = yield from self.ask(call, deadline, repeat, self._proof(lease))
            if pinned is None and not self.leases.terms.keeps_session and _is_refused_lease(answer):
                self.leases.drop(lease)
                lease = yield from self._lease(deadline, seconds)
                answer = yield from self.ask(call, deadline, repeat, self._proof(lease))
        except GatewayError as error:
            error.knows_keys = lease.knows_keys
            raise
        return answer, lease

    def _lease(self, deadline: float, seconds: float) -> Flow[Lease]:
        stale = self.leases.current  # before the look at it: what comes in between is not stale
        lease = self.leases.usable(self.clock.now(), seconds)
        if lease is not None:
            return lease
        left = self.left(deadline)
        if self.leases.living(self.clock.now()) is None:
            try:
                renewed: Lease = yield Alone(self._renewed(stale, deadline, Repeat.READ), left)
            except Unreachable as error:
                error.was_sent = False  # of the call, which goes out under the lease
                raise
            return renewed
        try:  # the call itself must have time left, whatever becomes of the renewal
            renewed = yield Alone(self._renewed_in_time(stale, deadline - left / 2, seconds), left / 2)
        except (Unavailable, RateLimited, Unreachable):
            living = self.leases.living(self.clock.now())
            if living is None:
                raise
            self.leases.postpone(self.clock.now())
            return living  # its last minute is better than nothing
        return renewed

    def _renewed_in_time(self, stale: Lease | None, deadline: float, seconds: float) -> Flow[Lease]:
        """One attempt to get a lease; concurrent calls wait for it and share its outcome."""
        lease = self.leases.usable(self.clock.now(), seconds)
        if lease is not None:
            return lease
        return (yield from self._renewed(stale, deadline, Repeat.NEVER))

    def _renewed(self, stale: Lease | None, deadline: float, repeat: Repeat) -> Flow[Lease]:
        """A new lease, or the one that another call has put in the place of `stale` meanwhile."""
        current = self.leases.current
        if current is not None and current is not stale:
            return current
        terms = self.leases.terms
        body: dict[str, Any] = {"scopes": list(terms.scopes), "dpop_jwk": self._key.jwk}
        if terms.max_calls is not None:
            body["budgets"] = {"max_calls": terms.max_calls}
        answer = yield from self.ask(json_call("POST", "/v1/leases", body), deadline, repeat, self._credential)
        issued = decode(IssuedLease, answer.expect(200).json(), "lease")
        lease = lease_of(issued, self.clock.now(), knows_keys=KEYS_HEADER.lower() in answer.headers)
        self.leases.replace(lease)
        return lease

    def _credential(self, _call: UnprovenCall) -> Headers:
        """The headers by which an edge knows this agent; none for an agent on the gateway's host."""
        read = self.leases.terms.token
        if read is None:
            return ()
        token = read().strip()
        holder_proof = self.leases.terms.holder_proof
        proof = None if holder_proof is None else holder_proof()
        if not all(one and all("!" <= sign <= "~" for sign in one) for one in (token, proof) if one is not None):
            raise ValueError("the token can't be sent as a header")
        if proof is None:
            return (("Authorization", f"Bearer {token}"),)
        return (("Authorization", f"DPoP {token}"), ("Client-DPoP", proof))

    def _proof(self, lease: Lease) -> "_Prove":
        return _Prove(self._prover, lease)


class _Prove:
    """Headers for one lease, made anew for every attempt."""

    def __init__(self, prover: Prover, lease: Lease) -> None:
        self._prover = prover
        self._lease = lease

    def __call__(self, call: UnprovenCall, /) -> Headers:
        return self._prover.headers(call, self._lease.token)


def _is_refused_lease(answer: ReceivedAnswer) -> bool:
    return answer.status == 401 and answer.error().code in {"lease_expired", "invalid_lease"}
