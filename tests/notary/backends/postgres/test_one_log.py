"""A gateway that joins a shared ledger with other keys, or under another name, than those that are there says so."""

from pathlib import Path
from typing import Any

import pytest

from ipc.operations.evidence import ReadCheckpoint
from tests.notary.conftest import StartNotary
from tests.notary.samples import make_note
from tests.support.logs import capture_logs

pytestmark = [pytest.mark.large, pytest.mark.usefixtures("patient_backends")]
SAID = "gateways that share the ledger sign it as different logs"


@pytest.mark.parametrize(
    ("settings", "has_own_keys", "cause"),
    [
        ({}, True, "signed by none of this gateway's keys"),
        ({"public_base_url": "http://elsewhere"}, False, "of localhost, and this gateway's are of elsewhere"),
        ({}, False, None),
    ],
    ids=["other keys", "another name", "the same"],
)
def test_keys_and_name_of_one_log(
    start: StartNotary, tmp_path: Path, settings: dict[str, Any], has_own_keys: bool, cause: str | None
) -> None:
    first = start("one")
    first.front.ask(make_note())
    first.front.ask(ReadCheckpoint())
    if has_own_keys:
        (tmp_path / "other").mkdir(mode=0o700)
    with capture_logs() as lines:
        start("other", **settings).front.ask(make_note())
    causes = [line["cause"] for line in lines if line["event"] == SAID]
    assert [cause is not None and cause in one for one in causes] == [True] * (cause is not None)
