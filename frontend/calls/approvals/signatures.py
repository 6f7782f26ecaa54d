"""Operators' own signatures of their decisions: checked before anything is claimed (docs/evidence.md).

Guarantees that what goes on from here was signed by the very key of the request's proof, for this hold as it is stored
and shown, and asks for exactly what the request asks for. The notary checks it again; this front's part is to say what
is wrong with it.
"""

from typing import NamedTuple

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

from frontend.auth.authentication import OperatorCaller
from frontend.auth.keys import parse_point
from frontend.calls.approvals.looks import Looks
from frontend.clock import TimeSource
from frontend.errors import GateError
from frontend.telemetry.logs import log
from ipc.backends.store import ApprovalRecord
from ipc.keys.jwk import KeyRefused
from ipc.keys.signed_approvals import SignatureRefused, Signed, SignedText, Subject, check_statement, read

_ES256 = ec.ECDSA(hashes.SHA256())


class SignedRequest(NamedTuple):
    """The decision that the request asks for, as the operator wrote it, and its signature."""

    decision: str
    learn_domain: str | None = None
    learn_path: str | None = None
    reason: str | None = None
    signature: str | None = None


class Signatures(msgspec.Struct, frozen=True):
    """Checks signatures of decisions made at one gateway."""

    clock: TimeSource
    addresses: tuple[str, ...]
    """Base URLs of this gateway (ipc/network/loopback.py `own_addresses`)."""
    is_required: bool
    looks: Looks

    async def check(self, asked: SignedRequest, approval: ApprovalRecord, operator: OperatorCaller) -> None:
        """Raises GateError: approval_signature_required, invalid_approval_signature, plan_integrity for a stored plan
        that no operator can have been shown, clock_error."""
        if asked.signature is None:
            if self.is_required:
                raise _refused("approval_signature_required", approval, operator, _MEND)
            return
        whole = await self.looks.whole(approval)
        subject = Subject(
            self.addresses, approval.approval_id, approval.action_id, whole.plan_hash, whole.shown_hash or "",
            operator.name,
        )  # fmt: skip
        now = self.clock.now()
        try:
            signed = read(asked.signature)
            check_key(signed.text, operator)
            check_statement(signed.statement, subject, now)
            _check_asked(signed, asked)
        except SignatureRefused as refused:
            message = f"the signature does not fit: {refused}; show the approval again and sign anew"
            raise _refused("invalid_approval_signature", approval, operator, message) from None


_MEND = "this gateway takes no decision without the operator's signature: send `signature`, as gatectl does"


def _refused(code: str, approval: ApprovalRecord, operator: OperatorCaller, message: str) -> GateError:
    log.warning(
        "an operator's decision was refused for its signature", code=code, approval_id=approval.approval_id,
        operator=operator.name, cause=message,
    )  # fmt: skip
    return GateError(code, message=message)


def check_key(signed: SignedText, operator: OperatorCaller) -> None:
    """Raises SignatureRefused unless the key of the request's proof has signed it."""
    if signed.jkt != operator.jkt:
        raise SignatureRefused("another key than that of the request's proof has signed it")
    try:
        key = parse_point(signed.x, signed.y)
        key.verify(encode_dss_signature(signed.r, signed.s), signed.signed, _ES256)
    except (KeyRefused, InvalidSignature):
        raise SignatureRefused("its key has not signed it") from None


def _check_asked(signed: Signed, asked: SignedRequest) -> None:
    for name in ("decision", "learn_domain", "learn_path", "reason"):
        if getattr(signed.statement, name) != getattr(asked, name):
            raise SignatureRefused(f"{name} is not what the request asks for")
