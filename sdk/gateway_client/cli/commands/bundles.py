"""Evidence bundles: fetch one, and verify one without a gateway."""

from dataclasses import asdict
from pathlib import Path

import click

from gateway_client.cli.arguments.files import jwks_in, read
from gateway_client.cli.arguments.operator_keys import thumbprint_in, thumbprint_of
from gateway_client.cli.arguments.verifier_keys import key_of, keys_in
from gateway_client.cli.commands.receipts import receipts
from gateway_client.cli.desk import CliContext, Command, Group, pass_desk
from gateway_client.cli.display.output import Output
from gateway_client.cli.display.safe import plain
from gateway_client.cli.exits import usage
from gateway_client.cli.views.kept import kept_pairs, not_proven
from gateway_client.evidence.bundles import MAX_BYTES, ProvenCall, verify_bundle
from gateway_client.evidence.notes import WITNESS

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


def add_to(cli: Group) -> None:
    """Hang the command into the tree; the other one is hung up already, under `receipts`."""
    cli.add_command(verify)


@receipts.command("bundle")
@click.argument("receipt_id", required=False)
@click.option("--event", "event_id", metavar="ID", help="Of this audit event.")
@click.option("--intent", "intent_id", metavar="ID", help="Of this execution intent.")
@pass_desk
def bundle(desk: CliContext, receipt_id: str | None, event_id: str | None, intent_id: str | None) -> None:
    """Print the evidence of one call as JSON: receipt, event, intent, their proofs and a signed checkpoint."""
    if sum(one is not None for one in (receipt_id, event_id, intent_id)) != 1:
        raise usage("name one: a receipt, --event or --intent", "gatectl receipts bundle RECEIPT_ID > bundle.json")
    with desk.operator() as operator:
        evidence = operator.proof(receipt_id=receipt_id, event_id=event_id, intent_id=intent_id)
    desk.out.document(evidence.raw)


@click.command("verify", cls=Command)
@click.argument("file", type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path))
@click.option("--origin-key", "given_keys", metavar="VKEY", multiple=True,
              help="Public key of the log, NAME+ID+KEY, as you keep it. May be given several times.")  # fmt: skip
@click.option("--origin-key-file", "keys_file", type=_FILE, help="The same from a file, one key a line.")
@click.option("--receipt-keys", "receipt_keys_file", type=_FILE, help="JWKS: check the receipt's own signature too.")
@click.option("--witness-key", "witness_keys", metavar="VKEY", multiple=True, help="Who must have cosigned, too.")
@click.option("--operator-jkt", "operator_jkts", metavar="JKT", multiple=True,
              help="Thumbprint of an operator, one of whom must have signed the approval.")  # fmt: skip
@click.option("--operator-key", "operator_files", type=_FILE, multiple=True,
              help="The same by a file with the operator's public key, PEM or JWK.")  # fmt: skip
@click.option("--witnesses", "count", metavar="N", type=click.IntRange(min=1),
              help="At least so many of the --witness-key, instead of each.")  # fmt: skip
@pass_desk
def verify(
    desk: CliContext, file: Path, given_keys: tuple[str, ...], keys_file: Path | None, receipt_keys_file: Path | None,
    witness_keys: tuple[str, ...], operator_jkts: tuple[str, ...], operator_files: tuple[Path, ...], count: int | None,
) -> None:  # fmt: skip
    """Verify the bundle in FILE, - for standard input, without gateway and ledger. Exit 8 when it proves nothing."""
    origin_keys = [*map(key_of, given_keys), *(() if keys_file is None else keys_in(keys_file))]
    if not origin_keys:
        raise usage("no key of the log is named", "--origin-key VKEY; the keys inside of a bundle prove nothing")
    jwks = None
    if receipt_keys_file is not None:
        jwks = jwks_in(receipt_keys_file)
    for one in witness_keys:
        key_of(one, WITNESS)
    data = read(file, MAX_BYTES, "no bundle is")
    operators = [*map(thumbprint_of, operator_jkts), *map(thumbprint_in, operator_files)]
    try:
        verdict = verify_bundle(
            data, origin_keys=origin_keys, receipt_keys=jwks, witness_keys=witness_keys, min_witnesses=count,
            operator_keys=operators,
        )  # fmt: skip
    except ValueError as error:
        raise usage(str(error), "--witness-key VKEY for each of them") from None
    if verdict.reason == "unreadable":
        raise usage(f"{file}: {verdict.sentence}".rstrip("."), "gatectl receipts bundle prints bundles")
    if desk.is_json:
        call = None if verdict.call is None else asdict(verdict.call)
        proven = {"proven": verdict.is_proven, "reason": verdict.reason, "sentence": verdict.sentence}
        desk.out.document({**proven, "call": call})
    elif verdict.call is not None:
        _show(desk.out, verdict.call)
    if verdict.call is None:
        raise not_proven(verdict.reason, verdict.sentence)


def _approval_signature(call: ProvenCall) -> list[tuple[str, object]]:
    if call.approved_by is None and call.standing_id is None:
        return []
    if call.approval_key is None:
        return [("signed", "not by the operator: the gateway alone says who approved")]
    known = "the operator's own" if call.is_operator_known else "not compared (--operator-jkt)"
    return [("signed", f"by the key {call.approval_key}, {known}")]


def _show(out: Output, call: ProvenCall) -> None:
    out.line(out.mark("proven"))
    approved = "none was needed" if call.approved_by is None else f"{call.approved_by} ({plain(call.approval_id)})"
    if call.standing_id is not None:
        approved = f"the standing approval {plain(call.standing_id)}"
    signature = "valid, by the key " + (call.receipt_key or "")
    if call.receipt_key is None:
        signature = "not checked (--receipt-keys): the checkpoint alone binds the receipt"
    pairs: list[tuple[str, object]] = [
        ("who", call.principal),
        ("what", f"{plain(call.action_id)} {call.action_version or ''}".rstrip()),
        ("when", f"{plain(call.dispatched_at)} to {plain(call.finished_at)}"),
        ("result", call.result),
        ("verification", call.verification),
        ("failure", call.failure_class),
        *kept_pairs(call),
        ("decision", f"{plain(call.decision)}, rule {plain(call.policy_rule)}, policy {plain(call.policy_version)}"),
        ("approved by", approved),
        *_approval_signature(call),
        ("receipt", call.receipt_id),
        ("its signature", signature),
        ("event", f"{plain(call.event_id)}, entry {call.event_index}"),
        ("intent", "none" if call.intent_id is None else f"{call.intent_id}, entry {call.intent_index}"),
        ("trace", call.trace_id),
        ("log", call.origin),
        ("entries", call.size),
        ("checkpoint", call.checkpoint_time),
        ("unresolved", call.unresolved_intents),
    ]
    pairs += [("witness", f"{name}, {moment}") for name, moment in call.witnesses.items()]
    out.facts(pairs)
