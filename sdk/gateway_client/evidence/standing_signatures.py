"""The signed text of a standing approval in a receipt, verified offline.

Never believes the key that stands in it: the caller gives the operators' thumbprints, or the verdict says that it was
not compared.
"""

import re
from collections.abc import Collection
from datetime import datetime

from gateway_client.errors import EvidenceRefused
from gateway_client.evidence.approval_signatures import opened
from gateway_client.evidence.records import Record
from gateway_client.wire.decoding import INTEGERS

STANDING_TYPE = "standing+jws"
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z")


def check_standing(receipt: Record, origin: str, operators: Collection[str]) -> str | None:
    """Check the standing approval by which a receipt's call ran; returns the thumbprint of its key, or None for a call
    that ran by none.

    `origin` is the name of the log that has the receipt. `operators` are thumbprints, one of which must be that key's;
    with none of them any key will do. Raises EvidenceRefused approval_signature.
    """
    standing_id, signature = receipt.text("standing_id"), receipt.text("standing_signature")
    if standing_id is None and signature is None:
        return None
    if signature is None:
        raise _refused("Its text is missing")
    if receipt.exact("approval") != "null":
        raise _refused("The receipt names an approval beside it")
    jkt, terms = opened(signature, STANDING_TYPE)
    if operators and jkt not in operators:
        raise _refused("It is not signed by an operator whose key is known")
    audience = terms.get("aud")
    if not isinstance(audience, list) or audience[1:] != [origin]:
        raise _refused("It is signed for another ledger")
    told = (standing_id, receipt.text("action_id"), receipt.text("principal"))
    if tuple(terms.get(name) for name in ("standing_id", "action_id", "principal")) != told:
        raise _refused("It is signed for other calls than the one that the receipt tells")
    until = terms.get("until")
    if type(until) is not int or until not in INTEGERS or _seconds(receipt.required("started_at")) >= until:
        raise _refused("Its time was over when the call began")
    return jkt


def _seconds(text: str) -> float:
    try:
        if _TIME.fullmatch(text):
            return datetime.fromisoformat(text).timestamp()
        raise ValueError("another form than the gateway's")
    except (ValueError, OverflowError):
        raise _refused("The receipt does not tell when the call began") from None


def _refused(why: str) -> EvidenceRefused:
    return EvidenceRefused("approval_signature", f"The standing approval does not hold. {why}.")
