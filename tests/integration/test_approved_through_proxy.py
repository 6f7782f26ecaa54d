"""An approved call to a name that the egress proxy does not know yet: live sync lets it through, while it runs."""

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx
import pytest

from tests.support.gateway import Bearer, Gateway, gateway, wait_for
from tests.support.manifests import PATIENT, example, open_policy, patient, write_manifests
from tests.support.squid import Squid, squid
from tests.support.upstream import Upstream

OWN, NEW = "upstream.gateway.test", "new.gateway.test"
LOOK_SECONDS = 0.05


@dataclass
class Stage:
    """A gateway with live sync, and a squid that reads its list again whenever it has changed."""

    gate: Gateway
    proxy: Squid
    listed: Path

    @property
    def entries(self) -> list[str]:
        return self.listed.read_text().splitlines()[1:]

    def held(self) -> str:
        """A call to the name that no rule allows, held."""
        answer = self.gate.agent().execute("any_host", {"host": NEW, "path": "hello.txt"})
        assert answer.status_code == 202, answer.text
        return str(answer.json()["approval_id"])

    @contextmanager
    def broken(self) -> Iterator[None]:
        """The list's folder is gone for a while."""
        folder = self.listed.parent
        away = folder.rename(folder.with_name(f"{folder.name}-away"))
        try:
            yield
        finally:
            away.rename(folder)

    def approve(self, approval_id: str, query: str = "") -> httpx.Response:
        return self.gate.operator().post(f"/v1/approvals/{approval_id}/approve{query}")


def inode_of(path: Path) -> int | None:
    try:
        return path.stat().st_ino
    except FileNotFoundError:
        return None


@contextmanager
def following(proxy: Squid, listed: Path) -> Iterator[None]:
    """The part of contrib/squid/gateway-squid.path: squid reads its configuration again when the list has changed."""
    is_over = threading.Event()

    def follow() -> None:
        seen = inode_of(listed)
        while not is_over.wait(LOOK_SECONDS):
            inode = inode_of(listed)
            if inode not in (seen, None):
                seen = inode
                proxy.reconfigure()

    thread = threading.Thread(target=follow)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


@pytest.fixture(scope="module")
def stage(up: Upstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    folder, port = tmp_path_factory.mktemp("approved"), int(up.address.rpartition(":")[2])
    any_host = example(
        "http_fetch", action_id="any_host", egress={"profile": "proxy_allowlist"},
        template={"url_template": f"http://{{host}}:{port}/{{+path}}"},
        io={"request_schema": {"required": ["host", "path"], "properties": {"host": {"type": "string"}}}}, **PATIENT,
    )  # fmt: skip
    with ExitStack() as stack:
        public = Path(stack.enter_context(TemporaryDirectory(prefix="gateway-listed-")))
        public.chmod(0o755)
        listed = public / "domains"
        listed.write_text("")
        proxy = stack.enter_context(squid((OWN, NEW), [port], domains=listed))
        config = (
            f'{patient(folder / "actions")}policy_dir = "{open_policy(folder / "policy", "any_host")}"\n'
            f'egress_proxy_url = "{proxy.url}"\n[egress]\nproxy_allowlist_file = "{listed}"\n'
        )
        write_manifests(folder / "actions", any_host)
        stack.enter_context(following(proxy, listed))
        yield Stage(stack.enter_context(gateway(folder, config)), proxy, listed)


def test_what_is_approved_once_is_let_through_once(stage: Stage) -> None:
    answer = stage.approve(stage.held())
    assert (answer.status_code, answer.json()["output"]["status"]) == (200, 200), answer.text
    wait_for(lambda: stage.entries == [OWN], "the list without it")
    assert stage.gate.agent().execute("any_host", {"host": NEW, "path": "hello.txt"}).status_code == 202


def test_what_is_approved_and_learned_stays_listed(stage: Stage) -> None:
    answer = stage.approve(stage.held(), f"?learn_domain={NEW}")
    assert (answer.status_code, answer.json()["learned_domain"]) == (200, NEW), answer.text
    assert stage.entries == [NEW, OWN]
    operator: Bearer = stage.gate.operator()
    headers = operator.headers("DELETE", "/v1/admin/domains/clear")
    assert operator.http.request("DELETE", "/v1/admin/domains/clear", headers=headers).status_code == 200
    wait_for(lambda: stage.entries == [OWN], "the list without it")


def test_an_approval_whose_name_can_not_be_listed_runs_nothing(stage: Stage) -> None:
    approval_id = stage.held()
    with stage.broken():
        answer = stage.approve(approval_id)
        assert (answer.status_code, answer.json()) == (500, {"error": "allowlist_sync_failed"})
    detail = stage.gate.operator().get(f"/v1/approvals/{approval_id}").json()
    assert (detail["state"], detail["error_code"]) == ("failed", "allowlist_sync_failed")
    event = stage.gate.events(event_type="ActionCall", limit=1)[0]
    assert (event["approval_id"], event["decision"]) == (approval_id, "error")
    assert event["error_code"] == "allowlist_sync_failed"
    assert stage.gate.operator().get("/v1/admin/intents").json()["intents"] == []
