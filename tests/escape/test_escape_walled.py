"""A compromised front, notary, deliverer, broker, exporter, template or compiler can do nothing of its table. The
processes are those of a running gateway. Their targets are its own ledger and keys (front, deliverer, broker, exporter,
compiler), or the files of others beside it (notary, which holds those, and template). See
tests/support/escape_inside.py.
"""

import json
import sys
from pathlib import Path

import pytest

from tests.support.escape_inside import FACTS
from tests.support.escape_steps import IS_X86
from tests.support.escape_surroundings import surroundings
from tests.support.escape_walled import ROWS_BY_NAME, WALLED
from tests.support.gateway import START_SECONDS, config_for, gateway, wait_for
from tests.support.manifests import example, patient, write_manifests

pytestmark = pytest.mark.skipif(not IS_X86, reason="the steps know the numbers of system calls of x86_64 alone")

_HOOK = '[[webhooks]]\nname = "chat"\nurl = "http://nowhere.invalid:9/"\nsecret = "a secret of some words"\n'
_COLLECTOR = '[telemetry.otlp]\nendpoint = "http://127.0.0.1:9"\n'
CASES = [pytest.param(kind, name, id=f"{kind}: {name}") for kind, names in WALLED.items() for name in names]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, str]]:
    """The result of every row in each kind of process."""
    folder: Path = tmp_path_factory.mktemp("walled")
    reports, other, state = folder / "reports", folder / "other", folder / "state"
    for one in (reports, other, folder / "elsewhere"):
        one.mkdir()
    (folder / "elsewhere" / "key.pem").write_text("secret")
    top = patient(folder / "actions")
    token = {"token_url": "https://nowhere.invalid/token", "client_id": "gateway"}
    secrets = [{"name": "client", "inject": {"oauth2_client_credentials": token}}]
    write_manifests(folder / "actions", example("http_post", secrets=secrets))
    program = (sys.executable, "-m", "tests.support.escape_inside_gateway", str(reports))
    with surroundings(other) as facts:
        facts |= {
            "actions": str(folder / "actions"), "configuration": str(folder / "gateway.toml"),
            "elsewhere": str(folder / "elsewhere" / "key.pem"),
        }  # fmt: skip
        theirs = facts | {"ledger": str(other / "ledger.sqlite3")}
        own = facts | {
            "outside": str(state), "key": str(state / "keys" / "receipt.pem"), "new": str(state / "new"),
            "ledger": str(state / "ledger.sqlite3"),
        }  # fmt: skip
        told = dict.fromkeys(("front", "deliverer", "broker", "exporter", "compiler"), own)
        told |= dict.fromkeys(("notary", "template"), theirs)
        (reports / FACTS).write_text(json.dumps(told))
        state.mkdir(mode=0o700)  # where nothing is compiled yet, so that a compiler runs
        (state / "secrets.json").touch(mode=0o600)
        (state / "secrets.json").write_text(json.dumps({"client": "c" * 20}))
        config = f'{config_for("127.0.0.1:9", top)}[secrets]\nfile = "{state}/secrets.json"\n{_HOOK}{_COLLECTOR}'
        with gateway(folder, config, program=program) as running:
            assert running.agent().execute("http_post", {"path": "messages", "message": "x"}).status_code == 502
            assert running.agent().execute("text_digest", {"text": "after it"}).status_code == 200
            wait_for(
                lambda: all((reports / f"{kind}.json").exists() for kind in WALLED), "the results of all rows",
                START_SECONDS,
            )  # fmt: skip
    return {kind: json.loads((reports / f"{kind}.json").read_text()) for kind in WALLED}


@pytest.mark.parametrize(("kind", "name"), CASES)
def test_no_process_of_the_gateway_escapes(outcomes: dict[str, dict[str, str]], kind: str, name: str) -> None:
    assert outcomes[kind][name] in ROWS_BY_NAME[name].allowed


@pytest.mark.parametrize("kind", WALLED)
def test_each_table_has_twenty_rows_at_least(kind: str) -> None:
    assert len(set(WALLED[kind])) >= 20
