"""The egress proxy's allow-list beside a running gateway: it follows operators, reloads, deaths and other hands."""

import fcntl
import os
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx
import pytest

from tests.support.background import Background
from tests.support.gateway import ANSWER_SECONDS, Bearer, Gateway, gateway, wait_for
from tests.support.manifests import PATIENT, example, open_policy, patient, write_manifests
from tests.support.processes import attempt
from tests.support.squid import squid
from tests.support.upstream import Upstream

HOST = "one.gateway.test"
OWN = ["upstream.gateway.test"]
"""The domains that all manifests of the examples allow."""
ANY_HOST = example(
    "http_fetch", action_id="any_host", template={"url_template": "http://{host}/{+path}"},
    io={"request_schema": {"required": ["host", "path"], "properties": {"host": {"type": "string"}}}}, **PATIENT,
)  # fmt: skip
DOMAINS, CLEAR = "/v1/admin/domains", "/v1/admin/domains/clear"


class Place:
    """One gateway's folder: manifests and policy; and the folder that the proxy reads its list from."""

    def __init__(self, folder: Path, public: Path, upstream: str) -> None:
        self.folder = folder
        self.actions = folder / "actions"
        self.listed = public / "for-squid" / "domains"
        self.listed.parent.mkdir(mode=0o755)
        top = patient(self.actions)
        write_manifests(self.actions, ANY_HOST)
        policy = open_policy(folder / "policy", "any_host", "more")
        names = "".join(f'"{name}" = "{upstream}"\n' for name in (HOST, *OWN))
        self.config = (
            f'{top}policy_dir = "{policy}"\negress_proxy_url = "http://127.0.0.1:1"\n'
            f'[egress]\nproxy_allowlist_file = "{self.listed}"\n[egress.unsafe_resolve]\n{names}'
        )

    @property
    def entries(self) -> list[str]:
        head, *lines = self.listed.read_text().splitlines()
        assert head == "# written by the gateway; changes are overwritten"
        return lines

    @contextmanager
    def broken(self) -> Iterator[Path]:
        """The proxy's folder is gone, with the list, which is yielded where it lies meanwhile."""
        away = self.listed.parent.with_name("away")
        self.listed.parent.rename(away)
        try:
            yield away / self.listed.name
        finally:
            away.rename(self.listed.parent)


@pytest.fixture(scope="module")
def place(up: Upstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """The list is in no folder of pytest: a squid that root starts changes to an unprivileged user, who can't read
    those."""
    with TemporaryDirectory(prefix="gateway-listed-") as public:
        Path(public).chmod(0o755)
        yield Place(tmp_path_factory.mktemp("live_sync"), Path(public), up.address)


@pytest.fixture(scope="module")
def gate(place: Place) -> Iterator[Gateway]:
    """A gateway with live sync; each test leaves the list as the manifests have it."""
    with gateway(place.folder, place.config) as running:
        yield running


@pytest.fixture(autouse=True)
def as_before(place: Place, gate: Gateway) -> Iterator[None]:
    assert place.entries == OWN
    yield
    assert place.entries == OWN
    assert os.listdir(place.listed.parent) == ["domains"]
    assert "Traceback" not in gate.log.read_text()


def change(operator: Bearer, method: str, path: str, body: Any = None) -> httpx.Response:
    headers = operator.headers(method, path)
    return operator.http.request(method, path, headers=headers, **({} if body is None else {"json": body}))


def rule(domain: str, action_id: str = "any_host") -> dict[str, str]:
    return {"action_id": action_id, "domain": domain}


def test_the_list_is_there_when_the_gateway_is_and_every_process_may_read_it(gate: Gateway, place: Place) -> None:
    status = place.listed.stat()
    assert (stat.S_IMODE(status.st_mode), status.st_uid) == (0o644, os.geteuid())
    assert '"entries":1' in gate.log.read_text()


def test_what_is_learned_with_an_approval_is_listed_with_its_answer(
    agent: Bearer, operator: Bearer, place: Place
) -> None:
    held = agent.execute("any_host", {"host": HOST, "path": "a"})
    assert held.status_code == 202, held.text
    path = f"/v1/approvals/{held.json()['approval_id']}/approve?learn_domain={HOST}"
    answer = operator.post(path)
    assert (answer.status_code, answer.json()["learned_domain"]) == (200, HOST)
    assert place.entries == [HOST, *OWN]
    assert change(operator, "DELETE", DOMAINS, rule(HOST)).status_code == 200


def test_a_reload_brings_domains_of_actions_and_takes_them_away(operator: Bearer, place: Place) -> None:
    allowed = {"allowed_domains": ["*.more.example", "upstream.gateway.test"]}
    write_manifests(place.actions, example("http_fetch", action_id="more", egress=allowed, **PATIENT))
    assert operator.post("/v1/admin/reload").status_code == 200
    assert place.entries == [".more.example", *OWN]
    assert change(operator, "POST", DOMAINS, rule("learned.example", "more")).status_code == 200
    assert place.entries == [".more.example", "learned.example", *OWN]
    (place.actions / "more.yaml").unlink()
    assert operator.post("/v1/admin/reload").status_code == 200
    # The answer to a reload waits a bounded time for a list that is at most too wide.
    wait_for(lambda: place.entries == OWN, "a list without the action that is gone, and without its rules")
    assert change(operator, "DELETE", CLEAR).json()["count"] == 1


def test_a_reload_whose_list_can_not_be_written_changes_nothing(gate: Gateway, operator: Bearer, place: Place) -> None:
    allowed = {"allowed_domains": ["more.example", "upstream.gateway.test"]}
    write_manifests(place.actions, example("http_fetch", action_id="more", egress=allowed, **PATIENT))
    with place.broken() as away:
        whole = away.read_bytes()
        answer = operator.post("/v1/admin/reload")
        assert (answer.status_code, answer.json()) == (500, {"error": "reload_failed"})
        assert gate.http.get("/v1/actions/more").status_code == 404
        assert away.read_bytes() == whole
    event = gate.events(event_type="AdminReload", limit=1)[0]
    assert (event["decision"], event["error_code"]) == ("error", "reload_failed")
    assert "egress.proxy_allowlist_file: " in event["reason"]
    (place.actions / "more.yaml").unlink()
    assert operator.post("/v1/admin/reload").status_code == 200


def test_what_can_not_be_written_is_not_answered_as_done_and_follows_by_itself(
    gate: Gateway, agent: Bearer, operator: Bearer, place: Place
) -> None:
    failed, call = (500, {"error": "allowlist_sync_failed"}), {"host": HOST, "path": "a"}
    assert change(operator, "POST", DOMAINS, rule(HOST)).status_code == 200
    with place.broken() as away:
        whole = away.read_bytes()
        for method, path, body in (
            ("POST", DOMAINS, rule("new.example")), ("DELETE", DOMAINS, rule(HOST)), ("DELETE", CLEAR, None),
        ):  # fmt: skip
            answer = change(operator, method, path, body)
            assert (answer.status_code, answer.json()) == failed, (method, path)
        assert away.read_bytes() == whole
        assert operator.get(DOMAINS).json() == {"domains": []}, "nothing new counts, and nothing old any longer"
        assert agent.execute("any_host", call).status_code == 202
        wait_for(gate.is_ready, "readiness")
    wait_for(lambda: place.entries == OWN, "the list to follow")
    (line, *_) = [one for one in gate.log.read_text().splitlines() if '"code":"allowlist_sync_failed"' in one]
    assert f"egress.proxy_allowlist_file: {place.listed.parent}: cannot look at it: No such file" in line


def test_a_front_that_dies_between_its_two_files_leaves_a_list_that_its_successor_puts_right(
    gate: Gateway, operator: Bearer, place: Place
) -> None:
    assert change(operator, "POST", DOMAINS, rule(HOST)).status_code == 200
    front, learned = gate.child("front"), gate.state / "fronts" / "learned.json"
    lock = os.open(gate.state / "fronts" / "egress-allowlist.lock", os.O_RDWR | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)  # the list can't be written now
        call = Background(lambda: change(operator, "DELETE", DOMAINS, rule(HOST)))
        wait_for(lambda: HOST not in learned.read_text(), "the first of the two files")
        assert place.entries == [HOST, *OWN]
        front.kill()
    finally:
        os.close(lock)
    assert call.status() in (0, 500), "it is not answered as done"

    def listed() -> Any:
        try:
            is_empty = gate.operator().get(DOMAINS).json() == {"domains": []}
            return is_empty and front not in gate.children("front")
        except httpx.TransportError:
            return None

    wait_for(listed, "the successor")
    assert place.entries == OWN, "before it answers anything"


def test_what_other_hands_do_to_the_list_is_mended(place: Place) -> None:
    place.listed.write_text(place.listed.read_text() + "evil.example\n")
    wait_for(lambda: place.entries == OWN, "the list as it should be")


def test_a_list_that_can_not_be_written_does_not_end_a_gateway_whose_front_dies(
    gate: Gateway, agent: Bearer, place: Place
) -> None:
    with place.broken():
        before = gate.child("front").pid
        gate.child("front").kill()
        wait_for(lambda: [one.pid for one in gate.children("front")] not in ([], [before]), "another front")
        wait_for(gate.is_ready, "a gateway that serves")
        assert agent.execute("text_digest", {"text": "x"}).status_code == 200
    wait_for(lambda: place.listed.exists() and place.entries == OWN, "the list as it should be")


# ------------------------------------------------------------------ a real squid


def tunnels(proxy: str, port: int, *hosts: str) -> set[str]:
    """The hosts that the proxy connects to."""
    reached = set[str]()
    for host in hosts:
        with socket.create_connection(("127.0.0.1", int(proxy.rpartition(":")[2])), ANSWER_SECONDS) as client:
            client.sendall(f"CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode())
            with client.makefile("rb") as answer:
                status = int(answer.readline().split()[1])
        assert status in (200, 403), status
        reached |= {host} if status == 200 else set()
    return reached


def test_a_real_squid_takes_the_list_and_what_becomes_of_it(operator: Bearer, place: Place, up: Upstream) -> None:
    port = int(up.address.rpartition(":")[2])
    below, apex, one, never = "a.b.partner.example", "partner.example", "x-partner.example", "never.example"
    everybody = (*OWN, below, apex, one, never, "z.never.example", "badpartner.example")
    with squid(everybody, [port], domains=place.listed) as proxy:

        def reached() -> set[str]:
            proxy.reconfigure()
            return tunnels(proxy.url, port, *everybody)

        assert tunnels(proxy.url, port, *everybody) == set(OWN)
        for domain in ("*.b.partner.example", below, apex, "*.partner.example", one):
            assert change(operator, "POST", DOMAINS, rule(domain)).status_code == 200
        assert place.entries == [".partner.example", *OWN, one]
        assert reached() == {*OWN, below, apex, one}
        assert change(operator, "DELETE", DOMAINS, rule("*.partner.example")).status_code == 200
        assert reached() == {*OWN, below, apex, one}
        for domain in (apex, one):
            assert change(operator, "DELETE", DOMAINS, rule(domain)).status_code == 200
        assert reached() == {*OWN, below}
        assert change(operator, "DELETE", CLEAR).status_code == 200
        assert reached() == set(OWN)
        said = proxy.says()
        assert not any(word in said for word in ("subdomain", "ERROR", "FATAL", "empty ACL")), said


# ------------------------------------------------------------------ starts that are refused


def test_a_start_is_refused_where_the_list_can_not_be_written_and_nothing_is_touched(
    place: Place, tmp_path: Path
) -> None:
    (tmp_path / "elsewhere").write_text("untouched\n")
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "gateway.toml").write_text(place.config.replace(str(place.listed), str(tmp_path / "link")))
    arguments = ("--state-dir", str(tmp_path / "state"), "--config", str(tmp_path / "gateway.toml"))
    ended = attempt("dev", "--listen", "127.0.0.1:0", *arguments)
    assert ended.returncode == 78, ended.stderr
    assert f"egress.proxy_allowlist_file: {tmp_path / 'link'}: is a link. Name the file itself." in ended.stderr
    assert ended.stdout == ""
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "elsewhere").read_text() == "untouched\n"
