"""The result of a call, for people, and whether its effect is confirmed."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from gateway_client.cli.display.output import Output
from gateway_client.cli.display.safe import lines, one_line, plain, safe
from gateway_client.cli.exits import Failure, ScriptExit
from gateway_client.contract.receipts import Receipt
from gateway_client.results import Executed

MAX_OUTPUT = 8000


def show_executed(out: Output, done: Executed) -> None:
    """Print a call that ran. Why nothing was learned stands first: it is what the operator must act on."""
    if done.learn_error:
        out.line(f"{out.mark('warn')}  NOTHING WAS LEARNED: {safe(done.learn_error)}. The call itself ran.")
    verified = out.mark(safe(done.verification_outcome))
    out.parts(["executed", safe(done.action_id), f"verification {verified}", safe(done.receipt_id)])
    pairs: list[tuple[str, object]] = []
    if done.runtime is not None and done.runtime.duration_ms is not None:
        pairs.append(("took", f"{done.runtime.duration_ms} ms"))
    if done.approval is not None:
        pairs.append(("approved by", done.approval.approved_by))
    if done.learned_domain:
        pairs.append(("learned", done.learned_domain))
    if done.learned_path:
        pairs.append(("learned", done.learned_path))
    out.facts([*pairs, ("trace", done.trace_id)])
    text = lines(json.dumps(done.output, ensure_ascii=False, indent=2, sort_keys=True))
    if len(text) > MAX_OUTPUT:
        text = f"{text[:MAX_OUTPUT]}… ({len(text) - MAX_OUTPUT} characters more: --json)"
    out.line(text)


@contextmanager
def telling(done: Executed) -> Iterator[None]:
    """Around what writes the answer of a call that ran: raises Failure that says so where it can't be written."""
    try:
        yield
    except OSError as error:
        raise Failure(
            ScriptExit.FAILED, "failed", f"the call ran, and its answer could not be written: {error.strerror}",
            f"gatectl receipts show {done.receipt_id}", may_have_run=True,
        ) from None  # fmt: skip


def ended(done: Executed) -> None:
    """Raise Failure for a call that ran, and did not come to all that was asked for."""
    if not done.is_fully_successful:
        raise Failure(
            ScriptExit.VERIFICATION_FAILED, "verification_failed", f"effect not confirmed: {done.verification_outcome}",
            f"gatectl receipts show {done.receipt_id}", may_have_run=True,
        )  # fmt: skip
    if done.learn_error:
        raise Failure(
            ScriptExit.FAILED, "not_learned", f"the call ran and nothing was learned: {done.learn_error}",
            "do not approve again; gatectl domains add, or gatectl paths add", may_have_run=True,
        )  # fmt: skip


def show_receipt(
    out: Output, receipt: Receipt, local_status: str | None, kept: Sequence[tuple[str, object]] = ()
) -> None:
    """Print a receipt; `local_status` is what this program found out about its signature, if it did, and `kept` shows
    the kept values of its call."""
    outcome = str(receipt.verification_outcome.get("status"))
    result = receipt.normalized_result
    why = result.get("summary") or result.get("reason")
    out.parts([safe(receipt.receipt_id), safe(result.get("kind")), f"verification {out.mark(safe(outcome))}"])
    pairs: list[tuple[str, object]] = [("because" if receipt.failure_class else "summary", why)]
    if receipt.failure_class:
        pairs.append(("failure", receipt.failure_class))
    if receipt.receipt_version is not None:
        pairs += [
            ("called by", receipt.principal), ("action", _named(receipt.action_id, receipt.action_version)),
            ("allowed by", f"{plain(receipt.policy_rule)}, policy {plain(receipt.policy_version)}"),
            ("approved by", _approved(receipt)), ("plan", receipt.plan_hash), ("request", receipt.request_hash),
            ("trace", receipt.trace_id),
        ]  # fmt: skip
    if receipt.egress_networks:
        pairs.append(("leads into", f"private network {plain(receipt.egress_networks)}"))
    out.facts(
        [
            *pairs, *kept, ("started", receipt.started_at), ("finished", receipt.finished_at),
            ("grant", receipt.grant_id),
            ("module", receipt.provider_module_digest), ("result hash", receipt.result_hash),
            ("signed by", receipt.signing_key_id), ("signature", _signature(receipt, local_status)),
            ("provider", _cut(one_line(receipt.provider_receipt))),
            *((f"evidence {at}", _cut(one_line(one))) for at, one in enumerate(receipt.effect_evidence, 1)),
        ]
    )  # fmt: skip


def _named(name: str | None, version: str | None) -> str:
    return f"{plain(name)} {version or ''}".rstrip()


def _approved(receipt: Receipt) -> str:
    approval = receipt.approval
    if receipt.standing_id is not None:
        return f"the standing approval {receipt.standing_id}"
    return "none was needed" if approval is None else f"{approval.approved_by} ({approval.approval_id})"


def _signature(receipt: Receipt, local_status: str | None) -> str:
    if local_status is not None:
        return local_status
    return f"{plain(receipt.signature_status)}, says the gateway (--verify checks it here)"


def _cut(text: str) -> str:
    return (
        text if len(text) <= MAX_OUTPUT else f"{text[:MAX_OUTPUT]}… ({len(text) - MAX_OUTPUT} characters more: --json)"
    )
