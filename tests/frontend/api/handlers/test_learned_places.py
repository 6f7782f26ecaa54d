"""Learned rules and the place of their action: absolute paths below it, actions that are gone or reach nothing."""

from pathlib import Path
from typing import Any

import pytest

from frontend.actions.registry import Registry
from tests.support.coded import Coded
from tests.support.front_core import Core, action, front_core, registry_of
from tests.support.held_calls import approve, filing, held, reached, reaching, state_of

pytestmark = pytest.mark.front(filing(), workers=0)

DOMAINS, PATHS = "/v1/admin/domains", "/v1/admin/paths"


def root_of(core: Core) -> str:
    """Where the files of the action lie on this host."""
    files = core.services.registry.actions[0].manifest.files
    assert files is not None
    return files.root_in(core.services.settings.files_folder)


async def test_a_path_below_the_root_of_its_action_may_be_given_absolute_and_is_shown_so(
    core: Core, tmp_path: Path
) -> None:
    root = root_of(core)
    rule = {"action_id": "echo", "path": f"{root}/reports/*"}
    answer = {"path": f"{root}/reports/*", "path_glob": "reports/*", "action_id": "echo"}
    assert await core.operate("POST", PATHS, rule) == (200, answer)
    (item,) = (await core.operate("GET", PATHS))[1]["paths"]
    assert (item["path"], item["path_glob"]) == (f"{root}/reports/*", "reports/*")
    assert await reached(core, await core.agent(), {"path": "reports/a"}) == ()
    relative = {"action_id": "echo", "path": "reports/*"}
    assert await core.operate("POST", PATHS, relative) == (409, {"error": "path_already_exists"})
    assert await core.operate("DELETE", PATHS, rule) == (200, {"removed": True})
    assert await core.operate("POST", PATHS, rule) == (200, answer)
    assert await core.operate("DELETE", PATHS, relative) == (200, {"removed": True})
    assert await core.operate("POST", PATHS, rule) == (200, answer)
    core.services.configuration.current.registry = registry_of(tmp_path / "others", action("other"))
    assert await core.operate("DELETE", PATHS, rule) == (200, {"removed": True})


@pytest.mark.parametrize("path", ["/etc/passwd", "{root}", "{root}/", "{root}/../x", "{root}x/a", "{root}//a"])
async def test_an_absolute_path_elsewhere_is_no_rule(core: Core, path: str) -> None:
    rule = {"action_id": "echo", "path": path.format(root=root_of(core))}
    assert await core.operate("POST", PATHS, rule) == (400, Coded("invalid_path"))
    _, approval_id = await held(core, path="new/a")
    learning = f"/v1/approvals/{approval_id}/approve?learn_path={rule['path']}"
    assert await core.operate("POST", learning) == (400, Coded("invalid_path"))
    assert await state_of(core, approval_id) == "pending"


async def test_an_absolute_path_is_learned_with_an_approval_too(core: Core) -> None:
    core.desk.start("fs")
    agent, approval_id = await held(core, path="new/a")
    given = f"{root_of(core)}/new/**"
    status, body = await approve(core, approval_id, f"?learn_path={given}")
    assert (status, body["learned_path"]) == (200, given)
    assert await reached(core, agent, {"path": "new/b"}) == ()


@pytest.mark.parametrize("query", ["learn_domain=new.example", "learn_path=new/**"])
async def test_nothing_is_learned_for_an_action_that_is_gone_as_its_endpoint_has_it(tmp_path: Path, query: str) -> None:
    async with front_core(tmp_path, reaching() if "domain" in query else filing(), workers=0) as core:
        body: dict[str, Any] = {"host": "new.example"} if "domain" in query else {"path": "new/a"}
        _, approval_id = await held(core, **body)
        core.services.configuration.current.registry = Registry()
        assert await approve(core, approval_id, f"?{query}") == (400, {"error": "unknown_action"})
        assert await state_of(core, approval_id) == "pending"
