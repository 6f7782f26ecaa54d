"""Hosts of actions that `gateway check --connect` can't look at."""

import threading
from pathlib import Path

import pytest

from frontend.configuration import upstream_checks
from tests.support.front_core import settings_of
from tests.support.manifests import example, write_manifests


async def test_a_host_that_can_not_be_looked_at_in_time_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_over = threading.Event()
    monkeypatch.setattr(upstream_checks, "UPSTREAM_SECONDS", 0.5)
    monkeypatch.setattr(upstream_checks, "doubt_of", lambda *_: is_over.wait(60))
    settings = settings_of(tmp_path, "jkt")
    write_manifests(Path(settings.manifests_dir), example("http_fetch", action_id="inward"))
    try:
        problems = await upstream_checks.look_at_upstreams(settings)
    finally:
        is_over.set()
    assert problems
    for problem in problems:
        assert problem.is_unreached
        assert "was not looked at within 0.5 s" in problem.message
