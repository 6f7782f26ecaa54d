"""Backends of the front, as `gateway check --connect` asks them."""

from functools import partial
from pathlib import Path

import pytest

from frontend.configuration.backend_checks import look_at_backends
from frontend.policy.opa import opening
from tests.support.front_core import settings_of
from tests.support.opa import opa
from tests.support.patience import PATIENCE

AUTHZ = """package system.authz

import rego.v1

default allow := false

allow if input.identity == "letmein"

allow if input.path == ["health"]
"""


async def test_an_opa_is_asked_with_the_token_and_a_missing_token_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening, "opa_problem", partial(opening.opa_problem, seconds=PATIENCE))
    token = tmp_path / "token"
    token.write_text("letmein\n")
    token.chmod(0o600)
    (tmp_path / "authz.rego").write_text(AUTHZ)

    async def problems(**settings: str) -> list[str]:
        told = await look_at_backends(settings_of(tmp_path, "jkt", opa_url=running.url, **settings))
        assert all((one.setting, one.is_unreached) == (("opa_url",), True) for one in told)
        return [one.message for one in told]

    options = ("--authentication=token", "--authorization=basic")
    with opa(tmp_path, (str(tmp_path / "authz.rego"),), options, is_tcp=True) as running:
        assert await problems(opa_token_file=str(token)) == []
        (refused,) = await problems()
        assert refused.startswith("opa_url: OPA answered 401")
        token.chmod(0o644)
        (open_file,) = await problems(opa_token_file=str(token))
        assert "mode 0644 lets others in" in open_file
