"""The addresses and ports that the deliverer can reach, and the facts about its endpoints that other processes get."""

from pathlib import Path

import msgspec
import pytest

from frontend.webhooks.walls import walls
from ipc.backends.webhooks import alone, without_addresses
from ipc.reloadable import reloadable_of
from ipc.settings import EgressSettings, LedgerSettings, OperatorSettings, Settings, StoreSettings, WebhookSettings
from ipc.walls.given import LANDLOCK, SECCOMP
from ipc.walls.kinds import KINDS
from ipc.walls.landlock import READ, READ_FILES
from tests.frontend.webhooks.samples import SECRET, hook


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    for name in ("state", "ledger", "secrets"):
        (tmp_path / name).mkdir()
    rows: tuple[WebhookSettings, ...] = (
        hook(name="filed", url="https://a.test/in", secret=None, secret_file=str(tmp_path / "secrets" / "hook")),
        hook(name="beside", url="https://b.test:8443/in", secret=None, secret_file=str(tmp_path / "ledger" / "hook")),
        hook(name="plain", url="http://c.test/in", headers={"authorization": "Bearer hush"}),
        hook(name="mapped", url="https://d.test/in"),
        hook(name="off", url="https://e.test:9/", secret=None, secret_file=str(tmp_path / "off/hook"), disable=True),
    )  # fmt: skip
    return Settings(
        str(tmp_path / "state"), "http://h", webhooks=rows, egress=EgressSettings({"d.test": "127.0.0.1:7777"}),
        ledger=LedgerSettings(path=str(tmp_path / "ledger" / "ledger.sqlite3")), egress_proxy_url="http://proxy:3128",
        operators=(OperatorSettings("ann", api_key="hush"),), store=StoreSettings(redis_url="redis://u:hush@h"),
    )  # fmt: skip


def test_a_deliverer_reaches_the_secrets_and_the_ports_of_its_endpoints_and_no_more(
    tmp_path: Path, settings: Settings
) -> None:
    built = walls(settings)
    places = {place.path: place.rights for place in built.places if Path(place.path).is_relative_to(tmp_path)}
    assert places == {str(tmp_path / "secrets"): READ, str(tmp_path / "ledger" / "hook"): READ_FILES}
    assert built.scope.ports == (53, 80, 443, 7777, 8443)
    assert (built.scope.may_connect, built.scope.may_bind) == (False, False)
    assert {SECCOMP, LANDLOCK, *built.namespaces} == set(KINDS["deliverer"]), "what gateway doctor says"


def test_no_other_process_is_told_an_address_or_a_secret_of_an_endpoint(settings: Settings) -> None:
    others = without_addresses(settings)
    assert [(row.name, row.disable, row.events) for row in others.webhooks] == [
        (row.name, row.disable, row.events) for row in settings.webhooks
    ]
    followed = reloadable_of(settings).without_addresses
    for told in (msgspec.json.encode(others.webhooks).decode(), msgspec.json.encode(followed).decode()):
        assert not [text for text in (".test", "https", SECRET, "Bearer", "secrets/hook") if text in told]


def test_a_deliverer_is_told_nothing_of_operators_stores_and_proxies(settings: Settings) -> None:
    told = alone(settings)
    assert (told.webhooks, told.guarded, told.egress) == (settings.webhooks, settings.guarded, settings.egress)
    others = msgspec.json.encode(msgspec.structs.replace(told, webhooks=())).decode()
    assert not [text for text in ("ann", "hush", "proxy:3128", "redis://") if text in others]
