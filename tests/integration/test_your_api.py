"""docs/your-api.md, typed: from an OpenAPI document to an approved refund at an API in a private network.

A production gateway, gatectl, and an API with TLS of its own authority, client certificates and OAuth2, in a network of
their own where the names of the page lead to 10.20.4.7.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from gateway_client.cli.exits import ScriptExit

from ipc.process.parent import die_with_parent
from tests.integration.test_rebinding import can_have_a_network
from tests.support.authority import Authority
from tests.support.gatectl import Gatectl
from tests.support.gateway import START_SECONDS, STOP_SECONDS, wait_for
from tests.support.manifests import REPOSITORY
from tests.support.private_api import API, LOGIN, READY, TOKEN
from tests.support.production import PUBLIC_URL, Production, mapping, production

pytestmark = pytest.mark.skipif(not can_have_a_network(), reason="needs root, ip, and namespaces of network and mounts")

ADDRESS = "10.20.4.7"
PAGE = (REPOSITORY / "docs" / "your-api.md").read_text()
BIN = Path(sys.executable).parent


def blocks(language: str) -> list[str]:
    """The fenced blocks of the page in one language."""
    every = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    return [text for name, text in every if name == language]


def commands(block: str) -> list[str]:
    """The commands of a block, since each may have a question of its own; one with a text below it stays whole."""
    return [block] if "<<" in block else block.splitlines(keepends=True)


@contextmanager
def apart(folder: Path) -> Iterator[tuple[str, ...]]:
    """A network with the API's address and a hosts file of its own; gives the words that begin a command in it."""
    (folder / "hosts").write_text(f"{ADDRESS} {API} {LOGIN}\n127.0.0.1 localhost\n")
    steps = (
        f"mount --bind {folder}/hosts /etc/hosts", "ip link set lo up", f"ip address add {ADDRESS}/32 dev lo",
        f"touch {folder}/apart", "exec sleep infinity",
    )  # fmt: skip
    own = os.getpid()
    holder = subprocess.Popen(
        ["unshare", "-m", "-n", "sh", "-c", " && ".join(steps)], preexec_fn=lambda: die_with_parent(own)
    )
    try:
        wait_for((folder / "apart").exists, "a network apart", START_SECONDS)
        yield "nsenter", "-t", str(holder.pid), "-m", "-n"
    finally:
        holder.kill()
        holder.wait(STOP_SECONDS)


@contextmanager
def api(folder: Path, within: tuple[str, ...]) -> Iterator[None]:
    """The API and its login server, in that network."""
    process = subprocess.Popen(
        [*within, sys.executable, "-m", "tests.support.private_api", str(folder), ADDRESS],
        env=os.environ | {"PYTHONPATH": str(REPOSITORY)},
    )
    try:
        wait_for((folder / READY).exists, "the API that serves", START_SECONDS)
        yield
    finally:
        process.kill()
        process.wait(STOP_SECONDS)


@dataclass
class Shell:
    """The terminal of the page's reader, in the gateway's folder."""

    folder: Path
    within: tuple[str, ...]
    person: Gatectl

    def typed(self, block: str) -> str:
        """The output of a command that ends well, or with a call that waits; its question is answered with yes."""
        script = f'cd "{self.folder}"\n{block.replace("/etc/gateway", str(self.folder))}echo "the end: $?"\n'
        ran = self.person.on_terminal(
            "--norc", "-c", script, program=[*self.within, "bash"], answer="y\r", until="[y/N]", columns=200
        )
        out = re.sub(r"\x1b\[[0-9;]*m", "", ran.out)
        ended = re.search(r"^the end: (\d+)$", out, re.MULTILINE)
        assert ended is not None
        assert int(ended[1]) in (0, ScriptExit.DENIED), out
        return out


@dataclass
class Site:
    """The reader's shell and their gateway."""

    shell: Shell
    gate: Production
    folder: Path

    def requests(self) -> list[dict[str, str]]:
        """The requests that reached the API."""
        return [json.loads(line) for line in (self.folder / "requests").read_text().splitlines()]


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    authority = Authority(tmp_path, "corp-ca")
    for name in (API, LOGIN):
        authority.issue(name)
    client = authority.issue("gateway.client")
    shutil.copy(client.certificate, tmp_path / "client.pem")
    shutil.copy(client.key, tmp_path / "client.key")
    (tmp_path / "client.key").chmod(0o600)
    shutil.copy(REPOSITORY / "contrib/examples/apis/billing.yaml", tmp_path)
    shutil.copytree(REPOSITORY / "contrib/policy", tmp_path / "policy")
    (tmp_path / "actions").mkdir()
    (tmp_path / "secrets.json").write_text("{}")
    (tmp_path / "secrets.json").chmod(0o600)
    top = f'manifests_dir = "{tmp_path / "actions"}"\npolicy_dir = "{tmp_path / "policy"}"\n'
    tables = f'{mapping(os.geteuid(), "billing-agent")}\n[secrets]\nfile = "{tmp_path / "secrets.json"}"\n'
    with apart(tmp_path) as within, api(tmp_path, within), production(tmp_path, top, tables, within=within) as gate:
        (tmp_path / "operator.key").write_text(gate.ready["operator"]["key"])
        (tmp_path / "operator.key").chmod(0o600)
        person = Gatectl(tmp_path).with_environment(
            PATH=f"{BIN}:{os.environ['PATH']}", HOME=str(tmp_path), GATECTL_PUBLIC_BASE_URL=PUBLIC_URL,
            GATECTL_ADDRESS=f"unix://{gate.ready['admin_socket']}",
            GATECTL_AGENT_ADDRESS=f"unix://{gate.ready['client_socket']}",
            GATECTL_OPERATOR_KEY_FILE=str(tmp_path / "operator.key"),
            GATECTL_PRIVATE_KEY_FILE=gate.ready["operator"]["private_key_file"],
        )  # fmt: skip
        yield Site(Shell(tmp_path, within, person), gate, tmp_path)


def test_the_page_leads_to_an_approved_call_of_an_api_in_a_private_network(site: Site) -> None:
    imported, *steps = blocks("bash")
    assert "left out: uploadDocument (multipart body)" in site.shell.typed(imported)
    (networks,) = blocks("toml")
    config = site.folder / "gateway.toml"
    config.write_text(config.read_text() + networks.replace("/etc/gateway", str(site.folder)))
    shown = "".join(site.shell.typed(command) for block in steps for command in commands(block))
    assert "private network billing" in shown
    assert re.search(r"signature +verified", shown), shown
    listed, refunded = site.requests()
    assert listed["request"] == "GET /v2/invoices?status=open"
    assert (refunded["request"], refunded["body"]) == ("POST /v2/invoices/inv_7/refunds", "amount_cents=2500")
    assert refunded["type"] == "application/x-www-form-urlencoded"
    assert {one["authorization"] for one in (listed, refunded)} == {f"Bearer {TOKEN}"}
    assert TOKEN not in site.gate.log.read_text()
