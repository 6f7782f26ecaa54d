"""Forms that fields of the contract have."""

import re
from datetime import UTC, datetime
from typing import Any

SEMANTIC = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?")
UUID7 = r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
SHA256 = re.compile(r"sha256:[0-9a-f]{64}")
OUTCOMES = (
    "verified",
    "verification_failed",
    "unverifiable_declared",
    "provider_failed_before_verification",
    "skipped",
)
RISKS = ("low", "medium", "high", "critical")


def is_id(prefix: str, value: Any) -> bool:
    """`prefix` and a UUID of version 7."""
    return isinstance(value, str) and re.fullmatch(prefix + UUID7, value) is not None


def is_sha256(value: Any) -> bool:
    return isinstance(value, str) and SHA256.fullmatch(value) is not None


def is_integer(value: Any, least: int = 0) -> bool:
    """A whole number; true and false are not accepted."""
    return type(value) is int and value >= least


def seconds_of(value: Any) -> float:
    """Unix seconds of an ISO 8601 time in UTC; anything else fails."""
    assert isinstance(value, str)
    moment = datetime.fromisoformat(value)
    assert moment.utcoffset() == datetime.now(UTC).utcoffset(), value
    return moment.timestamp()
