"""The ready line where standard output takes nothing: the gateway serves all the same."""

import contextlib
import json
import os
import sys
from pathlib import Path

import pytest

from supervisor.dev.ready import Ready, ReadyOperator, announcer
from tests.support.logs import capture_logs


@pytest.mark.parametrize("is_gone", [False, True])
def test_a_standard_output_that_is_full_or_gone_keeps_no_gateway_from_serving(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_gone: bool
) -> None:
    reader, writer = os.pipe()
    if is_gone:
        os.close(reader)
    else:
        os.set_blocking(writer, False)
        with contextlib.suppress(BlockingIOError):
            while os.write(writer, b"." * 4096):
                continue
        os.set_blocking(writer, True)
    operator = ReadyOperator("dev", "key", "key-file", "private-key-file")
    ready = Ready("http://here", "http://here", 1, str(tmp_path), "client", "admin", operator)
    with os.fdopen(writer, "w") as full, capture_logs() as lines:
        monkeypatch.setattr(sys, "stdout", full)
        announcer(ready, "hello\n", tmp_path / "ready.json")()
    if not is_gone:
        os.close(reader)
    assert json.loads((tmp_path / "ready.json").read_text())["base_url"] == "http://here"
    assert [line["event"].partition(":")[0] for line in lines] == ["the ready line was not printed"]
