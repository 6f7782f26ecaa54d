"""Receipts: show one, fetch the keys, verify without a gateway."""

from pathlib import Path
from typing import Any

import click

from gateway_client.cli.arguments import ids
from gateway_client.cli.arguments.files import jwks_in, read
from gateway_client.cli.desk import CliContext, Group, noun, pass_desk
from gateway_client.cli.display.times import clock
from gateway_client.cli.exits import Failure, ScriptExit, nothing_verified
from gateway_client.cli.views.kept import kept_pairs, proven_call
from gateway_client.cli.views.results import show_receipt
from gateway_client.errors import NotFound, ProtocolViolation
from gateway_client.evidence.receipts import ReceiptVerdict, SignatureStatus, verify_receipt, verify_receipts
from gateway_client.operators import OperatorClient
from gateway_client.results import AuditEvent
from gateway_client.wire.decoding import parse_json

receipts = noun("receipts", "Signed receipts of calls.", default="list")


def add_to(cli: Group) -> None:
    """Hang the commands into the tree."""
    cli.add_command(receipts)


@receipts.command("list")
@click.option("--limit", type=click.IntRange(1, ids.RECENT), default=50, show_default=True, help="Of so many calls.")
@pass_desk
def list_(desk: CliContext, limit: int = 50) -> None:
    """List the receipts of the newest calls; gatectl audit events has those of others."""
    with desk.operator() as operator:
        calls = [one for one in ids.recent_calls(operator, limit) if one.receipt_id is not None]
    if desk.is_json:
        desk.out.document({"receipts": [_listed(one) for one in calls], "count": len(calls)})
        return
    rows = [(clock(one.timestamp), one.receipt_id, *list(_listed(one).values())[2:]) for one in calls]
    desk.out.table(("TIME", "RECEIPT", "ACTION", "WHO", "VERIFICATION", "FAILED WITH"), rows, "no receipts")


def _listed(event: AuditEvent) -> dict[str, Any]:
    return {
        "receipt_id": event.receipt_id, "timestamp": event.timestamp, "action_id": event.action_id,
        "principal": event.principal, "verification_outcome": event.raw.get("verification_outcome"),
        "error_code": event.error_code,
    }  # fmt: skip


@receipts.command("show")
@click.argument("receipt_id", required=False)
@click.option("--verify", "is_verified", is_flag=True,
              help="Check signature and kept values here; exit 8 when they do not hold.")  # fmt: skip
@pass_desk
def show(desk: CliContext, receipt_id: str | None, is_verified: bool) -> None:
    """Show one receipt, without an id the newest. With --json exactly as the gateway sent it."""
    with desk.operator() as operator:
        receipt = operator.receipt(_newest(operator) if receipt_id is None else ids.receipt(operator, receipt_id))
        status, call = None, None
        if is_verified:
            keys = operator.receipt_keys()
            status = verify_receipt(receipt, keys)
            if status is SignatureStatus.VERIFIED:
                call = proven_call(operator, receipt.receipt_id, keys)
    if desk.is_json:
        desk.out.document(receipt.raw)
    else:
        kept = () if call is None else kept_pairs(call)
        show_receipt(desk.out, receipt, None if status is None else str(status), kept)
    if status not in {None, SignatureStatus.VERIFIED}:
        raise _unproven(1, 1, str(status))


@receipts.command("keys")
@pass_desk
def keys(desk: CliContext) -> None:
    """Print the keys that receipts verify with, as a JWKS. The gateway audits the request."""
    with desk.operator() as operator:
        desk.out.document(operator.receipt_keys().raw)


@receipts.command("verify")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path))
@click.option("--keys", "keys_file", required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path),
              help="JWKS: what `gatectl receipts keys` printed, or receipt-keys.jwks.json.")  # fmt: skip
@pass_desk
def verify(desk: CliContext, file: Path, keys_file: Path) -> None:
    """Check receipts of a FILE, - for standard input, without a gateway. One receipt, an array, or one a line."""
    jwks = jwks_in(keys_file)
    verdicts = list(verify_receipts(_receipts(read(file), str(file)), jwks))
    bad = [one for one in verdicts if one.status is not SignatureStatus.VERIFIED]
    if desk.is_json:
        desk.out.document(
            {
                "receipts": [{"receipt_id": one.receipt_id, "status": str(one.status)} for one in verdicts],
                "count": len(verdicts),
                "verified": len(verdicts) - len(bad),
            }
        )
    else:
        _show(desk, verdicts, bad)
    if not verdicts:
        raise nothing_verified(file, "receipt")
    if bad:
        raise _unproven(len(bad), len(verdicts), str(bad[0].status))


def _newest(operator: OperatorClient) -> str:
    receipt_id = next((one.receipt_id for one in ids.recent_calls(operator) if one.receipt_id is not None), None)
    if receipt_id is None:
        raise NotFound("receipt_not_found", status=404, reason="none of the newest calls has one")
    return receipt_id


def _show(desk: CliContext, verdicts: list[ReceiptVerdict], bad: list[ReceiptVerdict]) -> None:
    rows = [(one.receipt_id or "(no receipt)", str(one.status)) for one in (bad or verdicts)]
    desk.out.table(("RECEIPT", "SIGNATURE"), rows, "no receipts")
    desk.out.line(f"{len(verdicts) - len(bad)} of {len(verdicts)} verified")


def _receipts(data: bytes, name: str) -> list[Any]:
    try:
        document = parse_json(data, name)
    except ProtocolViolation:
        return [line for line in data.splitlines() if line.strip()]  # one a line: each has a verdict of its own
    return document if isinstance(document, list) else [document]


def _unproven(bad: int, count: int, status: str) -> Failure:
    return Failure(
        ScriptExit.VERIFICATION_FAILED, "receipt_not_verified", f"{bad} of {count} did not verify: {status}",
        "docs/evidence.md says what each status means",
    )  # fmt: skip
