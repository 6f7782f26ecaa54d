"""Which verifier judges a call, and what its judgement becomes.

One table from the manifest's `verifier_kind` to a verifier. Guarantees one of docs/contract.md,
"Verification outcomes", and that a verifier that can't do its work never yields `verified`. Verifiers believe
observations of the host, and of the provider's output only what they were told to compare.
"""

from collections.abc import Callable
from typing import Any

import msgspec

from ipc.messages import Observation, Verification
from ipc.plan import Plan
from workers.host.meter import HostError
from workers.verifiers.evidence import Evidence, Unverified
from workers.verifiers.fs_hash import verify_fs_hash
from workers.verifiers.http_status import verify_http_status
from workers.verifiers.schema import verify_response_schema

VERIFIED = "verified"
FAILED = "verification_failed"
UNVERIFIABLE = Verification("unverifiable_declared")
SKIPPED = Verification("skipped")
FAILED_BEFORE = Verification("provider_failed_before_verification")

Verifier = Callable[[Evidence], dict[str, Any]]
"""Returns the evidence as a JSON object, or raises Unverified with the reason."""

VERIFIERS: dict[str, Verifier] = {
    "http_status": verify_http_status,
    "fs_hash": verify_fs_hash,
    "response_schema": verify_response_schema,
}


def verify(
    plan: Plan, output: dict[str, Any], observations: tuple[Observation, ...], pulse: Callable[[], object],
    files_dir: str,
) -> Verification:  # fmt: skip
    """Judge a provider's success. `pulse` raises HostError once the call's time is over."""
    if plan.verifier_kind == "none":
        return SKIPPED
    if plan.verifier_kind == "unverifiable":
        return UNVERIFIABLE
    verifier = VERIFIERS.get(plan.verifier_kind)
    if verifier is None:
        return Verification(FAILED, f"no verifier of the kind {plan.verifier_kind}")
    try:
        config = msgspec.json.decode(plan.verification_config or "{}")
        if not isinstance(config, dict):
            raise Unverified("verification_config is not an object")
        details = verifier(Evidence(plan, config, output, observations, pulse, files_dir))
    except Unverified as error:
        return Verification(FAILED, str(error))
    except HostError as error:
        return Verification(FAILED, error.failure.message)
    except (OSError, ValueError, TypeError, KeyError) as error:
        return Verification(FAILED, f"the verifier failed ({type(error).__name__})")
    return Verification(VERIFIED, None, (msgspec.json.encode(details).decode(),))
