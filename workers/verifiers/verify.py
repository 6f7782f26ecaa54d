"""The verifiers' functions, by the manifest's `verifier_kind`, and the outcome of a call that they judge.

ipc/verifiers.py declares the kinds. Guarantees an outcome of docs/contract.md, "Verification outcomes", and that a
verifier that can't do its work never yields `verified`. Verifiers believe the host's observations; they read the
provider's output only to compare what their configuration names.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from ipc.expected import FileToLeave
from ipc.messages.attesting import UNREADABLE
from ipc.messages.calling import Observation, Verification
from ipc.plan import Plan
from ipc.verifiers import VERIFIERS
from workers.host.folders import Pulse
from workers.host.meter import HostError
from workers.verifiers.evidence import Evidence, Unverified
from workers.verifiers.fs_hash import look_at, verify_fs_hash
from workers.verifiers.http_status import verify_http_status
from workers.verifiers.schema import verify_response_schema

VERIFIED = "verified"
FAILED = "verification_failed"
FAILED_BEFORE = Verification("provider_failed_before_verification")


class VerifierFunctions(NamedTuple):
    """The functions of one kind."""

    verify: Callable[[Evidence], dict[str, Any]]
    """Return the evidence as a JSON object, or raise Unverified with the reason."""
    look_again: Callable[[str, FileToLeave, Pulse], tuple[str, str | None]] | None = None
    """See `look_at` in workers/verifiers/fs_hash.py. Given for exactly the kinds that keep a file to look at."""


FUNCTIONS: dict[str, VerifierFunctions] = {
    "http_status": VerifierFunctions(verify_http_status),
    "fs_hash": VerifierFunctions(verify_fs_hash, look_again=look_at),
    "response_schema": VerifierFunctions(verify_response_schema),
}


def verify(
    plan: Plan, output: dict[str, Any], observations: tuple[Observation, ...], pulse: Callable[[], object],
    files_dir: str,
) -> Verification:  # fmt: skip
    """Judge a provider's success. `pulse` raises HostError once the call's time is over."""
    kind = VERIFIERS.get(plan.verifier_kind)
    if kind is not None and kind.declared is not None:
        return Verification(kind.declared)
    functions = FUNCTIONS.get(plan.verifier_kind)
    if functions is None:
        return Verification(FAILED, f"no verifier of the kind {plan.verifier_kind}")
    try:
        config = msgspec.json.decode(plan.verification_config or "{}")
        if not isinstance(config, dict):
            raise Unverified("verification_config is not an object")
        details = functions.verify(Evidence(plan, config, output, observations, pulse, files_dir))
    except Unverified as error:
        return Verification(FAILED, str(error))
    except HostError as error:
        return Verification(FAILED, error.failure.message)
    except (OSError, ValueError, TypeError, KeyError) as error:
        return Verification(FAILED, f"the verifier failed ({type(error).__name__})")
    return Verification(VERIFIED, None, (msgspec.json.encode(details).decode(),))


def look_again(kind: str, files_dir: str, file: FileToLeave, pulse: Pulse) -> tuple[str, str | None]:
    """Have the verifier `kind` look at the file; a kind that can't look reports it as unreadable."""
    functions = FUNCTIONS.get(kind)
    if functions is None or functions.look_again is None:
        return UNREADABLE, None
    return functions.look_again(files_dir, file, pulse)
