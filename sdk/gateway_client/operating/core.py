"""The operator's calls: approvals, audit, receipts, status. No I/O; the clients are in gateway_client/operators.py."""

from dataclasses import asdict

from gateway_client.calling.core import json_call
from gateway_client.contract.activity import AuditSummary
from gateway_client.contract.admin import Drained
from gateway_client.contract.approvals import ApprovalDetail, ApprovalGiven
from gateway_client.contract.evidence import Bundle, Consistency, ShownCheckpoint
from gateway_client.contract.intents import ResolvedIntent, VerifiedIntent
from gateway_client.contract.receipts import Receipt
from gateway_client.errors import ApprovalsMissing
from gateway_client.evidence.approval_signatures import sign_decision
from gateway_client.operating.authority import AuthorityCore
from gateway_client.operating.calls import listed
from gateway_client.operating.kept_values import EvidenceCore
from gateway_client.operating.sessions import SessionsCore
from gateway_client.operating.standing import StandingCore
from gateway_client.operating.value_rules import ValueRulesCore
from gateway_client.operating.webhooks import WebhooksCore
from gateway_client.results import (
    ApprovalPage,
    AuditVerification,
    Denial,
    EventFilter,
    EventPage,
    Executed,
    Intent,
    IntentDetail,
    Jwks,
    Status,
)
from gateway_client.wire.decoding import decode
from gateway_client.wire.exchange import path_of, query_of
from gateway_client.wire.flows import Flow

VERIFY_SECONDS = 600.0
"""A ledger of millions of events takes minutes to walk."""
EVERY_EVENT = EventFilter()


class OperatorCore(AuthorityCore, EvidenceCore, ValueRulesCore, StandingCore, SessionsCore, WebhooksCore):
    """Every method gives a flow of one call and its typed result.

    All raise the exceptions of gateway_client/errors.py by status; below stands only what is special to a call.
    """

    def approvals(
        self,
        status: str | None = None,
        limit: int | None = None,
        *,
        principal: str | None = None,
        action_id: str | None = None,
        before: str | None = None,
        group: str | None = None,
    ) -> Flow[ApprovalPage]:
        """Approvals, newest first. `status`: pending, claimed, approved, denied or failed; `limit` up to 200; `before`,
        an ISO 8601 time: created before that.

        With `group` "principal" the gateway chooses them in turns, so that no principal hides another's.
        """
        query = query_of(
            status=status, limit=limit, principal=principal, action_id=action_id, before=before, group=group
        )
        answer = yield from self.read(path_of("v1", "approvals"), query)
        return decode(ApprovalPage, answer.json(), "approvals")

    def approval(self, approval_id: str, *, ended: bool = False) -> Flow[ApprovalDetail]:
        """The plan that runs when the hold is approved; the held plan, once it has ended. Raises NotFound, also for an
        expired one, unless `ended` asks for it."""
        query = query_of(ended="true" if ended else None)
        answer = yield from self.read(path_of("v1", "approvals", approval_id), query)
        return decode(ApprovalDetail, answer.json(), "approval")

    def approve(
        self,
        approval_id: str,
        learn_domain: str | None = None,
        learn_path: str | None = None,
        timeout: float | None = None,
        shown: ApprovalDetail | None = None,
    ) -> Flow[Executed]:
        """Execute the stored plan and wait for its result.

        `learn_domain` and `learn_path` are kept for the action when the execution succeeds. With `shown`, the detail
        that a person has read, the decision is signed with the operator's key; a gateway may require that. Raises
        ApprovalsMissing while others must approve, too, NotFound for a second or late decision, Conflict
        plan_integrity, ActionFailed, Denied approval_signature_required; ProtocolViolation, before anything is sent,
        for a `shown` that does not hash to
        its own `shown_hash`. The execution goes on when this client leaves.
        """
        path = path_of("v1", "approvals", approval_id, "approve")
        query = query_of(learn_domain=learn_domain, learn_path=learn_path)
        timeout = self.limits.execute_timeout if timeout is None else timeout
        body = None
        if shown is not None:
            body = {"signature": self._signed(shown, "approve", learn_domain=learn_domain, learn_path=learn_path)}
        answer = yield from self.write(json_call("POST", path, body, query), timeout, 202)
        if answer.status == 202:
            count = decode(ApprovalGiven, answer.json(), "approval").approvals
            raise ApprovalsMissing(int(count["given"]), int(count["needed"]))
        return decode(Executed, answer.json(), "result")

    def deny(self, approval_id: str, reason: str | None = None, shown: ApprovalDetail | None = None) -> Flow[Denial]:
        """End a hold without executing; the agent reads `reason`. Signed where `shown` is given, as in `approve`.

        Raises NotFound for a second decision.
        """
        given = {"reason": reason, "signature": None if shown is None else self._signed(shown, "deny", reason=reason)}
        body = {name: value for name, value in given.items() if value is not None} or None
        answer = yield from self.change("POST", path_of("v1", "approvals", approval_id, "deny"), body)
        return decode(Denial, answer.json(), "denial")

    def _signed(self, shown: ApprovalDetail, decision: str, **more: str | None) -> str:
        now = self.clock.now()
        return sign_decision(self._credential, self._public_base_url, shown, decision, now, **more)

    def events(self, where: EventFilter = EVERY_EVENT, limit: int | None = None) -> Flow[EventPage]:
        """Audit events, newest first; `limit` up to 1000. See `iter_events` of the clients for all of them."""
        named = asdict(where)
        kept = {f"kept.{pointer}": value for pointer, value in (named.pop("kept") or {}).items()}
        query = query_of(limit=limit, **named, **kept)
        answer = yield from self.read(path_of("v1", "audit", "events"), query)
        return decode(EventPage, answer.json(), "events")

    def audit_summary(
        self, *, after: str | None = None, before: str | None = None, step: str | None = None
    ) -> Flow[AuditSummary]:
        """Calls of a span of time, counted by `step` (hour or day) and decision, by action, and by principal."""
        query = query_of(after=after, before=before, step=step)
        answer = yield from self.read(path_of("v1", "audit", "summary"), query)
        return decode(AuditSummary, answer.json(), "summary")

    def verify_audit(self, timeout: float = VERIFY_SECONDS) -> Flow[AuditVerification]:
        """Let the gateway walk its whole chain. A broken chain is an answer (`intact` False), not an error."""
        answer = yield from self.read(path_of("v1", "audit", "verify"), timeout=timeout)
        return decode(AuditVerification, answer.json(), "verification")

    def checkpoint(self) -> Flow[ShownCheckpoint]:
        """A signed checkpoint of everything that is durable now. Verify it with open_checkpoint of the library."""
        answer = yield from self.read(path_of("v1", "audit", "checkpoint"))
        return decode(ShownCheckpoint, answer.json(), "checkpoint")

    def proof(
        self, *, event_id: str | None = None, intent_id: str | None = None, receipt_id: str | None = None
    ) -> Flow[Bundle]:
        """The evidence of one call, for offline verification (verify_bundle of the library).

        Raises ValueError unless exactly one is named; NotFound.
        """
        named = [one for one in (event_id, intent_id, receipt_id) if one is not None]
        if len(named) != 1:
            raise ValueError("name one of event_id, intent_id and receipt_id")
        query = query_of(event_id=event_id, intent_id=intent_id, receipt_id=receipt_id)
        answer = yield from self.read(path_of("v1", "audit", "proof"), query)
        return decode(Bundle, answer.json(), "bundle")

    def consistency(self, from_size: int) -> Flow[Consistency]:
        """Proof that the log of now begins with its first `from_size` entries (check_consistency of the library).

        Raises NotFound when the log was never of this size.
        """
        answer = yield from self.read(path_of("v1", "audit", "consistency"), query_of(**{"from": from_size}))
        return decode(Consistency, answer.json(), "consistency proof")

    def receipt(self, receipt_id: str) -> Flow[Receipt]:
        """One receipt. Raises NotFound."""
        answer = yield from self.read(path_of("v1", "receipts", receipt_id))
        return decode(Receipt, answer.json(), "receipt")

    def receipt_keys(self) -> Flow[Jwks]:
        """The public keys that receipts verify with, current and historical. Audited by the gateway."""
        answer = yield from self.read(path_of("v1", "receipt-keys"))
        return decode(Jwks, answer.json(), "receipt keys")

    def metrics(self) -> Flow[str]:
        """OpenMetrics text."""
        answer = yield from self.read("/metrics")
        return answer.text("application/openmetrics-text")

    def status(self) -> Flow[Status]:
        """The facts of the running gateway."""
        answer = yield from self.read(path_of("v1", "admin", "status"))
        return decode(Status, answer.json(), "status")

    def intents(self, limit: int | None = None, after: str | None = None) -> Flow[tuple[Intent, ...]]:
        """Calls that were dispatched and have no receipt, newest first. `limit` up to 1000; `after` is the id of the
        last one of the page before: older ones follow."""
        answer = yield from self.read(path_of("v1", "admin", "intents"), query_of(limit=limit, after=after))
        return listed(Intent, answer, "intents")

    def intent(self, intent_id: str) -> Flow[IntentDetail]:
        """All that is known of one of them, and whether its verifier can look again. Raises NotFound."""
        answer = yield from self.read(path_of("v1", "admin", "intents", intent_id))
        return decode(IntentDetail, answer.json(), "intent")

    def verify_intent(self, intent_id: str) -> Flow[VerifiedIntent]:
        """Have its verifier look again, without executing anything: the gateway keeps what it saw as an event. Raises
        NotFound, and Conflict where no verifier can look again, or its worker may still tell."""
        answer = yield from self.change("POST", path_of("v1", "admin", "intents", intent_id, "verify"))
        return decode(VerifiedIntent, answer.json(), "verified intent")

    def resolve_intent(self, intent_id: str, outcome: str, note: str | None = None) -> Flow[ResolvedIntent]:
        """Record the outcome of an intent: happened, did_not_happen or unknown. Raises NotFound, and Conflict while its
        worker may still report it."""
        body = {"outcome": outcome} if note is None else {"outcome": outcome, "note": note}
        answer = yield from self.change("POST", path_of("v1", "admin", "intents", intent_id, "resolve"), body)
        return decode(ResolvedIntent, answer.json(), "resolved intent")

    def drain(self) -> Flow[Drained]:
        """Refuse new work from now on; irreversible. Poll `status` until nothing is in flight."""
        answer = yield from self.change("POST", path_of("v1", "admin", "drain"))
        return decode(Drained, answer.json(), "drain")
