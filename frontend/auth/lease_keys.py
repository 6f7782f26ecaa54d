"""The keys of leases as one front holds them: one that signs, and by id all that verify.

Immutable: a rotation replaces the whole. A key that was followed by another verifies for as long as a lease that it
signed may live, and not a moment longer, whether or not anybody has taken it out of its set.
"""

from collections.abc import Iterable
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey, EllipticCurvePublicKey

from frontend.auth.keys import parse_point
from frontend.auth.keysets import ListedKey, public_jwk, published

MAX_TTL_SECONDS = 3600
"""No lease lives longer."""
LEASE_KEY_KEPT_SECONDS = MAX_TTL_SECONDS + 300
"""How long a key verifies after another followed: the longest lease, and a front that was slow to follow."""


class LeaseKeys:
    """`listed` names the key that signs; nothing in it is private."""

    def __init__(self, private: EllipticCurvePrivateKey, listed: Iterable[ListedKey]) -> None:
        self.private = private
        self.kid: str = public_jwk(private)["kid"]
        self._listed = {one.kid: one for one in listed}
        # A set that was read in the middle of a rotation may not name it as what it is here: the key that signs.
        self._listed[self.kid] = ListedKey(public_jwk(private))
        self._public = {kid: parse_point(one.jwk["x"], one.jwk["y"]) for kid, one in self._listed.items()}

    @classmethod
    def alone(cls, private: EllipticCurvePrivateKey) -> "LeaseKeys":
        """A key that no other came before."""
        return cls(private, ())

    def verifying(self, listed: Iterable[ListedKey]) -> "LeaseKeys":
        """The same key that signs, with another set that verifies."""
        return LeaseKeys(self.private, listed)

    def public_key(self, kid: str, now: float) -> EllipticCurvePublicKey | None:
        """The key of that id, if it verifies at `now` (Unix seconds)."""
        one = self._listed.get(kid)
        return None if one is None or one.is_over(now, LEASE_KEY_KEPT_SECONDS) else self._public[kid]

    def jwks(self, now: float) -> dict[str, Any]:
        """What verifies at `now`, the key that signs first."""
        in_force = [one for one in self._listed.values() if not one.is_over(now, LEASE_KEY_KEPT_SECONDS)]
        return published(in_force, self.kid)
