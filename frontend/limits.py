"""Token buckets of this process, one per rate class (interface specification, "Limits")."""

from frontend.errors import GateError
from frontend.http.rates import TokenBucket

PER_SECOND = {"lease": 50, "write": 20, "read": 100}
"""Lease issuance, operator writes, operator reads; a class without a row is not limited."""


class Rates:
    """Takes a token per request."""

    def __init__(self) -> None:
        self._buckets = {name: TokenBucket(rate, rate) for name, rate in PER_SECOND.items()}

    def take(self, name: str) -> None:
        """Raises GateError rate_limit_exceeded when the bucket of this class is empty."""
        bucket = self._buckets.get(name)
        if bucket is not None and bucket.take() is not None:
            raise GateError("rate_limit_exceeded")
