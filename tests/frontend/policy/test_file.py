"""The policy folder on a disk that does not answer."""

import threading
from pathlib import Path

import pytest
import trio
from msgspec.structs import replace

from frontend.files.exclusive import NotChanged
from frontend.policy import file as module
from frontend.policy.acl import PolicyFiles, read_policy
from frontend.policy.engine import PolicyRefused
from frontend.policy.file import PolicyFile
from tests.support.patience import PATIENT
from tests.support.policed import write_policy


async def test_a_folder_that_does_not_answer_keeps_no_threads_from_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_policy(tmp_path)
    deadlines = replace(PATIENT.policy, read_seconds=0.01, look_seconds=0.01)
    file, disk = PolicyFile(str(tmp_path), deadlines, PATIENT.files), threading.Event()
    others = trio.to_thread.current_default_thread_limiter()

    def hanging(folder: str, *, has_rules: bool) -> PolicyFiles:
        disk.wait(120)
        return read_policy(folder, has_rules=has_rules)

    monkeypatch.setattr(module, "read_policy", hanging)
    try:
        for _ in range(2 * module.MAX_THREADS):
            with pytest.raises(PolicyRefused, match="was not read within"):
                await file.read()
        with pytest.raises(NotChanged, match="does not answer"):
            async with file.turn():
                raise AssertionError("nothing is known of the file")
        assert others.borrowed_tokens == 0
    finally:
        disk.set()
    monkeypatch.undo()
    file.deadlines = PATIENT.policy
    assert (await file.read()).data.policy_version
