"""docs/webhooks.md says what there is, and its code does what it says."""

import json
import re
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from frontend.deadlines import WebhookDeadlines
from frontend.webhooks.sender import AT_ONCE
from frontend.webhooks.signing import signature_headers
from ipc.backends.webhooks import key_of
from ipc.settings import WEBHOOK_KINDS, WebhookSettings
from notary.backends.sqlite import SqliteDatabase
from notary.ledger import schema
from notary.ledger.message import _FIELDS, MAX_BODY_BYTES, SUMMARY_TEMPLATE, checkpoint_body
from notary.ledger.outbox import MAX_WAITING
from notary.tree.checkpoint import Checkpoint
from notary.upkeep.announcing import KIND
from tests.support.notary_thread import SMALL_WAL

TEXT = (Path(__file__).resolve().parents[3] / "docs" / "webhooks.md").read_text()
FLAT = " ".join(TEXT.split())
SECRET = re.findall(r"`(whsec_[\w+/=]+)`", TEXT)[0]
Verify = Callable[[str, dict[str, str], bytes], None]


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", TEXT, re.DOTALL)


def example() -> tuple[dict[str, str], bytes]:
    head, _, body = blocks("http")[0].strip().partition("\n\n")
    return dict(line.split(": ", 1) for line in head.splitlines()[1:]), body.encode()


@pytest.fixture
def verify(monkeypatch: pytest.MonkeyPatch) -> Verify:
    """The document's own code, at the time of its example."""
    scope: dict[str, Any] = {}
    exec(blocks("python")[0], scope)
    moment = int(example()[0]["webhook-timestamp"])
    monkeypatch.setattr(scope["time"], "time", lambda: moment + 299.0)
    function: Verify = scope["verify"]
    return function


def test_every_kind_is_described_and_no_other() -> None:
    assert tuple(re.findall(r"^\| `([a-z.]+)` \|", TEXT, re.MULTILINE)) == WEBHOOK_KINDS


def test_every_field_of_data_is_named() -> None:
    told = [json.loads(block) for block in [*blocks("json"), example()[1].decode()]]
    shown = {name for one in told if one.get("type") != KIND for name in one.get("data", {})}
    named = set(re.findall(r"`(\w+)`", TEXT[TEXT.index("those above, and") :].split("\n\n")[0]))
    assert (set(_FIELDS) - {SUMMARY_TEMPLATE}) | {"change"} == shown | (named & set(_FIELDS))


def test_the_checkpoint_that_is_shown_has_what_one_has() -> None:
    (told,) = [one for one in map(json.loads, blocks("json")) if one.get("type") == KIND]
    made = Checkpoint("o", 1, b"r" * 32, "2026-11-21T21:59:00.118Z", 0)
    sent = json.loads(checkpoint_body(made, "n", "chk_1", KIND, "0.1.0"))
    assert (set(told), set(told["data"])) == (set(sent), set(sent["data"]))


def test_the_example_is_one_that_the_gateway_would_send() -> None:
    headers, body = example()
    assert int(headers["content-length"]) == len(body)
    assert body.decode() == json.dumps(json.loads(body), separators=(",", ":"), sort_keys=True)
    moment = int(headers["webhook-timestamp"])
    signed = signature_headers(key_of(SECRET), headers["webhook-id"], moment, body)
    assert signed == {name: headers[name] for name in signed}


def test_the_code_takes_the_example_and_others_that_are_signed_with_the_secret(verify: Verify) -> None:
    headers, body = example()
    verify(SECRET, headers, body)
    headers["webhook-signature"] = f"v1,b3RoZXI= {headers['webhook-signature']} v2,x"
    verify(SECRET, headers, body)
    text = "a secret of some words"
    verify(text, signature_headers(key_of(text), "evt_1", int(headers["webhook-timestamp"]), body), body)


@pytest.mark.parametrize("change", ["secret", "body", "id", "time", "signature", "age"])
def test_the_code_refuses_whatever_else(verify: Verify, change: str) -> None:
    (headers, body), secret = example(), SECRET
    if change == "secret":
        secret = "another secret of words"
    elif change == "body":
        body = body.replace(b"critical", b"harmless")
    elif change == "id":
        headers["webhook-id"] = "evt_2"
    elif change == "time":
        headers["webhook-timestamp"] = str(int(headers["webhook-timestamp"]) + 1)
    elif change == "signature":
        headers["webhook-signature"] = headers["x-gateway-signature"]
    else:
        headers |= signature_headers(key_of(SECRET), "evt_1", int(headers["webhook-timestamp"]) - 10, body)
    with pytest.raises(ValueError, match=r"secret|old"):
        verify(secret, headers, body)


def test_numbers_are_those_of_the_code() -> None:
    defaults = WebhookSettings(name="a", url="b")
    assert f"{MAX_BODY_BYTES // 1024} KiB at most" in FLAT
    assert f"{MAX_WAITING:,} deliveries wait" in FLAT
    assert AT_ONCE == 4
    assert "At most four requests" in FLAT
    assert WebhookDeadlines().claim_margin_seconds == defaults.timeout_seconds == 5.0
    assert defaults.retry_backoff_seconds == (1.0, 5.0, 30.0)
    assert "after 1, 5 and 30 seconds" in FLAT


def test_the_questions_to_the_ledger_are_ones_that_it_can_answer(tmp_path: Path) -> None:
    questions = re.findall(r"^\$ sqlite3 -readonly ledger\.sqlite3 \"(.+)\"$", TEXT, re.MULTILINE)
    assert len(questions) == 2
    ledger = SqliteDatabase(tmp_path / "ledger.sqlite3", schema.prepare, SMALL_WAL)
    ledger.open()
    ledger.close()
    connection = sqlite3.connect(tmp_path / "ledger.sqlite3")
    for question in questions:
        assert connection.execute(question).fetchall() == []
    connection.close()
