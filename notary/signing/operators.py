"""Whether an operator signed a decision: the notary's own check, with keys that no front can change.

SECURITY: a front says which operator has decided. With this it can't say so of one who has not: the signature is read
anew here, and its key must be the one that the settings, which the notary has from the supervisor, name for them.
"""

from collections.abc import Iterable

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ec import ECDSA, SECP256R1, EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256

from ipc.keys.signed_approvals import SignatureRefused, Signed, SignedText, read
from ipc.settings import OperatorSettings
from ipc.texts.encoding import b64url_decode

_ALGORITHM = ECDSA(SHA256())


def signed_by(text: str, name: str, operators: Iterable[OperatorSettings]) -> Signed:
    """The claims that this operator's own key has signed. Raises SignatureRefused."""
    operator = operator_named(name, operators)
    signed = read(text)
    check_owner(signed.text, operator)
    check_signature(signed.text)
    return signed


def operator_named(name: str, operators: Iterable[OperatorSettings]) -> OperatorSettings:
    """The operator of this name. Raises SignatureRefused."""
    for one in operators:
        if one.name == name:
            return one
    raise SignatureRefused("the settings have no operator of this name")


def check_owner(signed: SignedText, operator: OperatorSettings) -> None:
    """Raises SignatureRefused unless the key in its header is this operator's own.

    An operator without `dpop_jkt` has no key of their own, and exists in dev mode only: any key will do for them.
    """
    if operator.dpop_jkt not in (None, signed.jkt):
        raise SignatureRefused("another key than this operator's dpop_jkt has signed it")


def check_signature(signed: SignedText) -> None:
    """Raises SignatureRefused unless the key in its header, anybody's, has signed it."""
    try:
        point = b"\x04" + b64url_decode(signed.x) + b64url_decode(signed.y)
        key = EllipticCurvePublicKey.from_encoded_point(SECP256R1(), point)
        key.verify(encode_dss_signature(signed.r, signed.s), signed.signed, _ALGORITHM)
    except (InvalidSignature, ValueError):
        raise SignatureRefused("its key has not signed it") from None
