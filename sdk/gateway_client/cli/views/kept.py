"""Kept values for people: those that a bundle proves, and the erased ones."""

from gateway_client.cli.display.safe import one_line, safe
from gateway_client.cli.exits import Failure, ScriptExit
from gateway_client.evidence.bundles import ProvenCall, verify_bundle
from gateway_client.operators import OperatorClient
from gateway_client.results import Jwks


def proven_call(operator: OperatorClient, receipt_id: str, keys: Jwks) -> ProvenCall:
    """The call of a receipt, proven by its bundle. Raises Failure for a bundle that proves nothing.

    The keys are the gateway's own, as those that its receipt was checked with; `gatectl verify` takes yours.
    """
    bundle = operator.proof(receipt_id=receipt_id)
    known = () if bundle.keys is None else bundle.keys.checkpoints
    verdict = verify_bundle(bundle, origin_keys=known, receipt_keys=keys)
    if verdict.call is None:
        raise not_proven(verdict.reason, verdict.sentence)
    if verdict.call.receipt_id != receipt_id:
        raise not_proven("disagreement", "The bundle is of another receipt.")
    return verdict.call


def not_proven(reason: str | None, sentence: str | None) -> Failure:
    """The failure for a bundle that proves nothing."""
    return Failure(
        ScriptExit.VERIFICATION_FAILED, "bundle_not_proven", f"{reason}: {sentence}".rstrip("."),
        "the bundle proves nothing; docs/evidence.md",
    )  # fmt: skip


def kept_pairs(call: ProvenCall) -> list[tuple[str, object]]:
    """A line for each kept value."""
    values = [(pointer, one_line(value)) for pointer, value in call.kept.items()]
    return [("kept", f"{safe(pointer)}: {text}") for pointer, text in values + [(one, "erased") for one in call.erased]]
