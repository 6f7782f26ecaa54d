"""The first minute, as README.md and docs/first-action.md tell it: their fenced blocks, typed on a terminal.

`gateway dev` has all of its defaults here but the port, and finds its state and gatectl in a home of its own.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.support.gatectl import Gatectl
from tests.support.gateway import ANSWER_SECONDS, PROGRAM, STOP_SECONDS, ready_line

ROOT = Path(__file__).resolve().parents[2]
README, FIRST_ACTION = ((ROOT / name).read_text() for name in ("README.md", "docs/first-action.md"))
BIN = Path(sys.executable).parent
REQUESTS = {
    "text_digest": ("text=x",), "file_write": ("path=a/b.txt", "content=x"), "http_fetch": ("path=a?b=1",),
    "http_post": ("path=a", "message=x"), "spin": ("fuel=1",),
}  # fmt: skip


def blocks(document: str, language: str) -> list[str]:
    every = re.findall(r"^```(\w*)\n(.*?)^```$", document, re.DOTALL | re.MULTILINE)
    return [text for name, text in every if name == language]


@contextmanager
def serving(home: Path, *arguments: str) -> Iterator[str]:
    """`gateway dev` in `home`; gives its address."""
    log = home / "gateway.log"
    with log.open("ab") as errors:
        process = subprocess.Popen(
            [*PROGRAM, "dev", "--listen", "127.0.0.1:0", *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=errors, text=True, env=os.environ | {"XDG_STATE_HOME": str(home / "state")}, cwd=home,
        )  # fmt: skip
    assert process.stdout is not None
    try:
        yield ready_line(process, log)["base_url"]
    finally:
        process.terminate()
        process.wait(STOP_SECONDS)
        process.stdout.close()


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def base(home: Path) -> Iterator[str]:
    """A plain `gateway dev`, for all tests that do not bring actions of their own."""
    with serving(home) as address:
        yield address


def person(home: Path) -> Gatectl:
    """A user in a shell with the programs on the path, where no context was ever made."""
    (home / ".venv").mkdir(exist_ok=True)
    (home / ".venv" / "bin").mkdir(exist_ok=True)
    activate = home / ".venv" / "bin" / "activate"
    activate.write_text(f'PATH="{BIN}:$PATH"\n')
    return Gatectl(home).with_environment(HOME=str(home))


def typed(home: Path, block: str) -> str:
    """The output of a terminal in which a user pastes the block and answers the one question with yes."""
    script = f'source .venv/bin/activate\ncd "{home}"\n{block}echo "the end: $?"\n'
    ran = person(home).on_terminal(
        "--norc", "-c", f'cd "{home}"\n{script}', program=["bash"], answer="y\r", until="[y/N]"
    )
    return re.sub(r"\x1b\[[0-9;]*m", "", ran.out)


def test_the_readme_leads_to_a_held_payment_that_is_paid_and_to_a_verified_receipt(home: Path, base: str) -> None:
    (block,) = blocks(README, "bash")
    shown = typed(home, block)
    assert "the end: 0" in shown, shown
    assert "text_digest  verification" in shown
    assert "HELD" in shown
    assert '"state": "paid"' in shown
    assert re.search(r"signature +verified", shown)
    assert "intact: " in shown
    typed_commands = sum(len(one.splitlines()) for one in (blocks(README, "")[0], block))
    assert typed_commands + 1 < 10  # one more for the clone itself


def test_every_example_action_runs_on_a_plain_dev_gateway(home: Path, base: str) -> None:
    here = person(home)
    for action, values in REQUESTS.items():
        assert here.done("execute", action, *values, "--json").json["action_id"] == action
    denied = here.here("execute", "forbidden_export", "table=t")
    assert (denied.code, "not allowed for any agent" in denied.err) == (3, True)


def test_the_agent_of_the_readme_runs(home: Path, base: str) -> None:
    (example,) = blocks(README, "python")
    ran = subprocess.run(
        [sys.executable, "-c", example.replace("http://127.0.0.1:3000", base)], capture_output=True, text=True,
        timeout=STOP_SECONDS,
    )  # fmt: skip
    assert (ran.returncode, "rcpt_" in ran.stdout) == (0, True), ran.stderr


def test_an_agent_may_use_any_name_of_this_machine(home: Path, base: str) -> None:
    there = person(home).with_environment(GATECTL_ADDRESS=base.replace("127.0.0.1", "localhost"))
    assert there.done("execute", "text_digest", "text=x", "--json").json["output"]["bytes"] == 1


def test_an_operator_may_approve_under_any_name_of_this_machine(home: Path, base: str) -> None:
    running = json.loads((home / "state" / "gateway-dev" / "running.json").read_text())
    there = person(home).with_environment(
        GATECTL_ADDRESS=base.replace("127.0.0.1", "localhost"), GATECTL_OPERATOR_KEY_FILE=running["operator_key_file"],
        GATECTL_PRIVATE_KEY_FILE=running["private_key_file"],
    )  # fmt: skip
    held = there.here("execute", "payment_transfer", "to=acct-9", "amount_cents=1", "currency=EUR", "--json")
    approval_id = held.json["approval_id"]
    approved = there.done("approvals", "approve", approval_id, "--yes", "--json").json
    receipt = there.done("receipts", "show", approved["receipt_id"], "--json").json
    assert receipt["approval"]["signature"]


def test_a_401_says_what_did_not_hold(base: str) -> None:
    answer = httpx.get(f"{base}/v1/receipts/x", headers={"Authorization": "DPoP x"}, timeout=ANSWER_SECONDS)
    assert (answer.status_code, answer.json()["error"]) == (401, "missing_auth_header")
    assert answer.json()["reason"] == "no DPoP header"


def test_make_run_passes_its_arguments_on() -> None:
    said = subprocess.run(
        ["make", "-n", "--no-print-directory", "run", "ARGS=--listen 127.0.0.1:3001"], capture_output=True, text=True,
        cwd=ROOT, check=True,
    ).stdout  # fmt: skip
    assert said.splitlines()[-1].endswith("/gateway dev --listen 127.0.0.1:3001")


def test_an_action_of_ones_own_is_made_checked_called_changed_and_approved(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    home = tmp_path_factory.mktemp("own")
    make, call, change = blocks(FIRST_ACTION, "bash")
    (serve,) = blocks(FIRST_ACTION, "")
    made = typed(home, make)
    assert "no problems, 1 action" in made
    data = home / "my-gateway" / "policy" / "data.json"
    assert json.loads(data.read_text())["acl"]["dev:anonymous"]["actions"] == ["greet"]
    again = typed(home, "gateway new action greet\n")
    assert ("is there already; nothing was changed" in again, "the end: 78" in again) == (True, True)
    with serving(home, *serve.split()[2:]):
        called = typed(home, call)
        assert ("the end: 0" in called, '"text": "hello"' in called) == (True, True), called
        changed = typed(home, change)
        assert ("the end: 0" in changed, "HELD" in changed, '"path": "/greet"' in changed) == (True, True, True), (
            changed
        )
