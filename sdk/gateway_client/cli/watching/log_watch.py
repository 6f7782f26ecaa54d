"""The log of a gateway followed from outside: each checkpoint must continue the last one that was seen.

Owns the file that the last one is kept in, with the key that signed it. Guarantees that the file is replaced whole, and
only after every check: what raises leaves it as it was.
"""

from dataclasses import dataclass
from pathlib import Path

from gateway_client.cli.display.safe import json_text
from gateway_client.cli.exits import Failure, ScriptExit
from gateway_client.contract.evidence import Consistency, ShownCheckpoint
from gateway_client.errors import EvidenceRefused, NotFound, ProtocolViolation
from gateway_client.evidence.notes import Checkpoint, VerifierKey, open_checkpoint, unbase64
from gateway_client.evidence.tree import check_consistency
from gateway_client.keys import KeyFileError, read_private, replace_private
from gateway_client.operators import OperatorClient
from gateway_client.wire.decoding import parse_json

MAX_STATE = 262_144
NEVER_OF_THIS_SIZE = "evidence_not_found"
REPLACED = "if the gateway's key was replaced, get the new one from its operator and give it with --origin-key"


class Alarm(Failure):
    """The log is not what it was, or that can't be shown. `note`: the checkpoint that does not fit, as it was sent."""

    def __init__(self, message: str, note: str, file: Path, mend: str | None = None) -> None:
        evidence = f"keep {f'{file} and ' if file.exists() else ''}this checkpoint as evidence; docs/evidence.md"
        super().__init__(ScriptExit.VERIFICATION_FAILED, "log_inconsistent", message.rstrip("."), mend or evidence)
        self.note = note


@dataclass(frozen=True, slots=True)
class LastVerified:
    """The last checkpoint that was seen and verified, and the verifier key that signed it."""

    origin_key: str
    note: str
    checkpoint: Checkpoint


def load(file: Path) -> LastVerified | None:
    """The kept checkpoint; None without a file. Raises Failure watch_state for a malformed file."""
    if not file.exists():
        return None
    try:
        fields = parse_json(read_private(file, MAX_STATE), str(file))
        key, note = fields["origin_key"], fields["checkpoint"]
        return LastVerified(key, note, open_checkpoint(note, [VerifierKey.parse(key)]))
    except KeyFileError as error:
        raise _refused(str(error)) from None
    except EvidenceRefused as refusal:
        raise _refused(f"{file}: its checkpoint is not signed by its key: {refusal}") from None
    except (ProtocolViolation, ValueError, TypeError, KeyError, AttributeError):
        raise _refused(f"{file} is no file of a watch") from None


def save(file: Path, kept: LastVerified) -> None:
    """Replace the file. Raises Failure."""
    try:
        replace_private(file, json_text({"origin_key": kept.origin_key, "checkpoint": kept.note}).encode() + b"\n")
    except KeyFileError as error:
        raise Failure(ScriptExit.FAILED, "failed", str(error).rstrip("."), "see its folder") from None


class LogWatch:
    """One log, one file. `origin_key`: the key to trust, None for that of the file, or the first that is seen."""

    def __init__(self, operator: OperatorClient, file: Path, origin_key: str | None = None) -> None:
        """Raises Failure watch_state."""
        self._operator = operator
        self._file = file
        self._trusted = origin_key
        self.kept = load(file)
        self.is_pinning = origin_key is None and self.kept is None
        """True when the first key that the gateway names is the one to trust."""

    def look(self) -> LastVerified:
        """Fetch the newest checkpoint, verify it and keep it. Raises Alarm, GatewayError."""
        kept = self.kept
        newest = self._first() if kept is None else self._next(kept)
        if newest != kept:
            save(self._file, newest)
            self.kept = newest
        return newest

    def _first(self) -> LastVerified:
        shown = self._operator.checkpoint()
        return self._opened(shown.checkpoint, self._trusted or self._signer(shown))

    def _signer(self, shown: ShownCheckpoint) -> str:
        """The key that the gateway itself names, where no other is known."""
        refusal: ValueError = EvidenceRefused("note_signature", "The gateway names no key of its log.")
        for key in shown.keys:
            try:
                open_checkpoint(shown.checkpoint, [VerifierKey.parse(key)])
            except ValueError as error:
                refusal = error
            else:
                return key
        raise Alarm(str(refusal), shown.checkpoint, self._file)

    def _next(self, kept: LastVerified) -> LastVerified:
        """The newest checkpoint, proven to continue the kept one."""
        key = self._trusted or kept.origin_key
        try:
            answer = self._operator.consistency(kept.checkpoint.size)
        except NotFound as error:
            if error.code != NEVER_OF_THIS_SIZE:  # a gateway without checkpoints
                raise
            newest = self._opened(self._operator.checkpoint().checkpoint, key)
            self._require_same_log(kept, newest)
            raise self._unproven(kept, newest, "the gateway has no proof") from None
        newest = self._opened(answer.checkpoint, key)
        self._require_same_log(kept, newest)
        self._require_continued(kept, newest, answer)
        return newest

    def _opened(self, note: str, key: str) -> LastVerified:
        try:
            return LastVerified(key, note, open_checkpoint(note, [VerifierKey.parse(key)]))
        except EvidenceRefused as refusal:
            mend = f"the trusted key is {key}; {REPLACED}" if refusal.reason == "note_signature" else None
            raise Alarm(str(refusal), note, self._file, mend) from None

    def _require_same_log(self, kept: LastVerified, fetched: LastVerified) -> None:
        old, new = kept.checkpoint, fetched.checkpoint
        if new.origin != old.origin:
            message = f"the gateway shows the log {new.origin!a}; that of {self._file} is {old.origin!a}"
            raise Alarm(message, fetched.note, self._file)
        if new.size < old.size:
            message = f"the log had {old.size} entries at {old.time} and has {new.size} at {new.time}"
            raise Alarm(message, fetched.note, self._file)

    def _require_continued(self, kept: LastVerified, fetched: LastVerified, answer: Consistency) -> None:
        old, new = kept.checkpoint, fetched.checkpoint
        try:
            check_consistency(old.size, old.root, new.size, new.root, [unbase64(one) for one in answer.proof])
        except ValueError as error:  # EvidenceRefused, and what is no base64
            raise self._unproven(kept, fetched, str(error)) from None

    def _unproven(self, kept: LastVerified, fetched: LastVerified, why: str) -> Alarm:
        old, new = kept.checkpoint, fetched.checkpoint
        message = f"the log of {new.size} entries is not proven to begin with the {old.size} of {old.time}: {why}"
        return Alarm(message, fetched.note, self._file)


def _refused(message: str) -> Failure:
    mend = "look who changed it; to follow the log anew, name another file"
    return Failure(ScriptExit.USAGE, "watch_state", message.rstrip("."), mend)
