"""Each server in ipc/backends/servers.py is registered with the notary, in the schema of settings, and in the
documents."""

import json
from pathlib import Path

import pytest

from ipc.backends.servers import BACKENDS, EMBEDDED, Backend, names_of, used
from ipc.settings import Settings
from notary.servers.table import LEDGERS, STORES
from supervisor.settings.schema import Leaf, node_at

DOCS = Path(__file__).resolve().parents[2] / "docs"
EACH = pytest.mark.parametrize("backend", BACKENDS, ids=lambda backend: backend.name)


def test_every_server_of_store_and_ledger_is_registered_with_the_notary() -> None:
    registered = [one.declared for one in (*STORES, *LEDGERS)]
    assert registered == [one for one in BACKENDS if one.part in ("store", "ledger")]


@EACH
def test_the_setting_of_a_server_has_the_form_of_its_url(backend: Backend) -> None:
    node = node_at(tuple(backend.setting.split(".")))
    assert isinstance(node, Leaf)
    assert backend.form is None or node.kind.form["pattern"] == backend.form.pattern
    assert backend.url(Settings("/state", "http://gateway.test")) is None


@EACH
def test_the_page_on_configuration_has_the_setting_of_a_server(backend: Backend) -> None:
    assert f"| `{backend.setting}` |" in (DOCS / "configuration.md").read_text()


def test_the_status_of_the_gateway_may_name_every_backend() -> None:
    schemas = json.loads((DOCS / "openapi.json").read_text())["components"]["schemas"]
    told = {part: schema["enum"] for part, schema in schemas["Backends"]["properties"].items()}
    assert told == {part: names_of(part) for part in EMBEDDED}


def test_a_gateway_without_servers_has_embedded_backends() -> None:
    alone = Settings("/state", "http://gateway.test")
    assert used(alone) == EMBEDDED
    with_opa = Settings("/state", "http://gateway.test", opa_url="http://127.0.0.1:8181")
    assert used(with_opa) == EMBEDDED | {"policy": "opa"}
