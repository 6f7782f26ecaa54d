"""Thresholds beside the rules of a real OPA, and rules there that read values of requests."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.frontend.calls.test_thresholds import PAY, RULES, paid
from tests.support.front_core import Core
from tests.support.opa import Opa, opa
from tests.support.opa_engines import opa_engine
from tests.support.policed import policed
from tests.support.policy import HEADER, document

REGO = f"""{HEADER}decision := {document(requires_approval="true", rule='"odd"')} if {{
	input.request["/amount"] == 77
}} else := {document(allowed_sinks="input.requested_sinks")}
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Opa]:
    folder: Path = tmp_path_factory.mktemp("opa")
    (folder / "values.rego").write_text(REGO)
    with opa(folder, (str(folder / "values.rego"),)) as running:
        yield running


@pytest.fixture
async def core(server: Opa, tmp_path: Path) -> AsyncIterator[Core]:
    data = {"allowlist": {}, "thresholds": RULES}
    async with opa_engine(server, tmp_path) as engine, policed(tmp_path, PAY, engine=engine, data=data) as front:
        yield front


async def test_thresholds_make_the_answers_of_an_opa_stricter_and_its_rules_read_values(core: Core) -> None:
    assert await paid(core, 100) == (200, "test")
    assert await paid(core, 77) == (202, "odd")
    assert await paid(core, 100.5) == (202, "threshold")
    assert await paid(core, "100") == (202, "threshold")
    assert await paid(core, 1001) == (403, "threshold")
    assert await paid(core, 77, currency="CHF") == (403, "threshold"), "a hold of the OPA becomes a denial"
