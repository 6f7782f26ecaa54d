"""A state directory with unresolved intents: their gateway ended two hours ago, in the middle of its calls.

A call of a sound gateway always ends, and one whose gateway was killed may still be told of for its time limit and a
minute: too long for a test. So a real notary, whose clock stands two hours back, writes them and is ended.
"""

import hashlib
import time
from pathlib import Path
from typing import Any

from ipc.expected import FileToLeave
from tests.notary.running import Running
from tests.notary.samples import call_event, make_open

AGO_SECONDS = 7200.0


def leave_intents(state: Path, *terms: dict[str, Any]) -> list[str]:
    """One intent for each of these terms, in a state directory that no gateway uses; their ids."""
    notary = Running(state)
    try:
        notary.clock.time = time.time() - AGO_SECONDS
        left = []
        for one in terms:
            call = make_open(
                event=call_event(action_id="file_write", risk_level="medium", allowed_sinks=("fs_write",)), terms=one
            )
            notary.front.begin(call)
            left.append(call.intent_id)
        return left
    finally:
        notary.close()


def file_terms(root: Path, path: str, content: bytes) -> dict[str, Any]:
    """Terms of a call that was to write this file."""
    return {"verifier_kind": "fs_hash", "file": expected(root, path, content)}


def expected(root: Path, path: str, content: bytes) -> FileToLeave:
    """The file that such a call was to leave."""
    return FileToLeave(str(root), path, "sha256:" + hashlib.sha256(content).hexdigest(), len(content))
