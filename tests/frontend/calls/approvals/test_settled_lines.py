"""The one line of the log that tells what an operator's decision came to."""

from pathlib import Path
from typing import Any

import pytest

from frontend.notary.errors import NotaryUnavailable
from tests.support.front_core import action, front_core, refuses
from tests.support.held_calls import held
from tests.support.logs import capture_logs


@pytest.mark.parametrize(
    ("action_id", "verb", "fault", "line"),
    [
        ("echo", "approve", None, ("allow", None, None)),
        ("die", "approve", None, ("error", "action_execution_failed", "worker_lost")),
        ("echo", "deny", None, ("deny", "approval_denied", None)),
        ("echo", "approve", "Open", ("error", "evidence_persistence_failed", "the disk is full")),
    ],
    ids=["approved", "failed", "denied", "not opened"],
)
async def test_a_decision_has_one_line_with_what_it_came_to(
    tmp_path: Path, action_id: str, verb: str, fault: str | None, line: tuple[Any, ...]
) -> None:
    async with front_core(tmp_path, action(), action("die")) as core:
        _, approval_id = await held(core, action_id=action_id)
        if fault is not None:
            core.client.faults[fault] = refuses(NotaryUnavailable("the disk is full"))
        with capture_logs() as lines:
            await core.operate("POST", f"/v1/approvals/{approval_id}/{verb}")
        (told,) = [one for one in lines if "duration_ms" in one]
        assert (told["decision"], told.get("code"), told.get("cause")) == line
        assert "answered with an error" not in [one["event"] for one in lines]
