"""`[[webhooks]]` in the configuration."""

from pathlib import Path
from typing import Any

import pytest

from ipc.settings import WEBHOOK_KINDS, Settings, WebhookSettings
from supervisor.settings.checks.production import weakened
from supervisor.settings.config import Loaded
from supervisor.settings.problems import as_json
from supervisor.settings.sections.webhooks import MAX_ENDPOINTS
from tests.supervisor.settings.parsed import checked, with_rows

NAME, URL, SECRET = 'name = "chat"', 'url = "https://hooks.example/T0/B1"', 'secret = "0123456789abcdef"'


def loaded(*tables: str) -> Loaded:
    return checked(with_rows("webhooks", tables))


def of(*lines: str) -> Settings:
    checked = loaded("\n".join(lines))
    assert checked.settings is not None, checked.problems
    return checked.settings


def test_an_endpoint_needs_a_name_an_address_and_a_secret_and_has_the_documented_defaults() -> None:
    (one,) = of(NAME, URL, 'secret_file = "keys/hook"').webhooks
    assert one == WebhookSettings(
        name="chat", url="https://hooks.example/T0/B1", secret_file="/etc/gateway/keys/hook", events=WEBHOOK_KINDS[:-1],
        timeout_seconds=5.0, max_retries=3, retry_backoff_seconds=(1.0, 5.0, 30.0), disable=False,
    )  # fmt: skip


def test_everything_else_may_be_said() -> None:
    (one,) = of(
        NAME, 'url = "http://hooks.example:8080/?a=b"', 'secret = "whsec_AAAAAAAAAAAAAAAAAAAAAA=="',
        'events = ["revocation", "approval.pending"]', 'headers = {Authorization = "Bearer abc"}',
        "timeout_seconds = 2.5", "max_retries = 0", "retry_backoff_seconds = [0.5, 2]", "disable = true",
    ).webhooks  # fmt: skip
    assert one.events == ("revocation", "approval.pending")
    assert one.headers == {"authorization": "Bearer abc"}
    assert (one.timeout_seconds, one.max_retries, one.retry_backoff_seconds, one.disable) == (2.5, 0, (0.5, 2.0), True)


WRONG: list[tuple[list[str], str]] = [
    ([URL, SECRET], "webhooks[0].name: is missing"),
    ([NAME, SECRET], "webhooks[0].url: is missing"),
    ([NAME, URL], "needs exactly one of secret_file and secret"),
    ([NAME, URL, SECRET, 'secret_file = "f"'], "needs exactly one of secret_file and secret"),
    ([NAME, URL, 'secret = "0123456789"'], "must have 16 characters or more"),
    ([NAME, URL, 'secret = "whsec_AAAAAAAAAAAA"'], "must be 16 bytes or more"),
    ([NAME, URL, 'secret = "whsec_?AAAAAAAAAAAAAAAAAAAAAAAA"'], "must have base64 after whsec_"),
    ([NAME, URL, 'secret = "0123456789abcdé-ä"'], "must be one line of printable ASCII"),
    ([NAME, 'url = "ftp://hooks.example/"', SECRET], "must be an http or https URL"),
    ([NAME, 'url = "https://u:token@hooks.example/"', SECRET], "neither user nor fragment"),
    ([NAME, 'url = "https://hooks.example/#token"', SECRET], "neither user nor fragment"),
    ([NAME, 'url = "https://hooks.example:99999/"', SECRET], "is not a URL"),
    ([NAME, 'url = "https://hooks.example:0/"', SECRET], "must name its host by a name"),
    ([NAME, 'url = "https://127.0.0.1/"', SECRET], "must name its host by a name"),
    ([NAME, 'url = "https://10.0.0.0x1/"', SECRET], "must name its host by a name"),
    ([NAME, 'url = "https://[::1]/"', SECRET], "must name its host by a name"),
    ([NAME, 'url = "https://Hooks.example/"', SECRET], "must name its host by a name in lower case"),
    ([NAME, 'url = "https://hooks.example./"', SECRET], "must name its host by a name"),
    ([NAME, 'url = "https://hooks.example\\\\@10.0.0.1/"', SECRET], "an http or https URL in ASCII"),
    ([NAME, URL, SECRET, "events = []"], "must be an array with at least one item"),
    ([NAME, URL, SECRET, 'events = ["approval.*"]'], 'must be "approval.pending" or'),
    ([NAME, URL, SECRET, 'headers = {"content-type" = "a"}'], "is a header of the gateway's own"),
    ([NAME, URL, SECRET, 'headers = {"Webhook-Id" = "a"}'], "is a header of the gateway's own"),
    ([NAME, URL, SECRET, 'headers = {"a b" = "a"}'], "is no name of a header"),
    ([NAME, URL, SECRET, 'headers = {x-key = "a\\r\\nb: c"}'], "must be a text of printable ASCII"),
    ([NAME, URL, SECRET, "timeout_seconds = 0"], "must be 0.1 or more"),
    ([NAME, URL, SECRET, "max_retries = 11"], "must be 10 or less"),
    ([NAME, URL, SECRET, "retry_backoff_seconds = [0]"], "must be 0.01 or more"),
    ([NAME, URL, SECRET, "retries = 1"], 'unknown key "retries"'),
]


@pytest.mark.parametrize(("lines", "said"), WRONG)
def test_an_invalid_endpoint_is_refused_with_its_place_and_without_secrets(lines: list[str], said: str) -> None:
    problems = loaded("\n".join(lines)).problems
    assert [said in str(problem) for problem in problems] == [True], problems
    shown = str(problems[0])
    assert shown.startswith("g.toml:")
    for hidden in ("0123456789", "AAAAAAAA", "token", "ftp:", "99999", "10.0.0"):
        assert hidden not in shown


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('webhooks = ["https://hooks.example/hush"]', "webhooks[0]: must be a table"),
        (f'[[webhooks]]\n{NAME}\n{URL}\n{SECRET}\nheaders = "a: hush"', "webhooks[0].headers: must be a table"),
        (f'[[webhooks]]\n{NAME}\n{URL}\n{SECRET}\nheaders = {{"a: hush" = "b"}}', "is no name of a header"),
        (f'[[webhooks]]\n{NAME}\n{URL}\nsecret_file = "whsec_hush"', "must be the path of a file"),
        ('operators = ["hush"]', "operators[0]: must be a table"),
    ],
)
def test_a_misplaced_value_may_be_a_secret_and_is_not_shown(text: str, said: str) -> None:
    reported = checked(text + "\n").problems
    assert [said in str(problem) for problem in reported].count(True) == 1, reported
    assert "hush" not in as_json(reported)


def test_a_header_stands_there_once_however_its_name_is_written() -> None:
    (problem,) = loaded("\n".join((NAME, URL, SECRET, 'headers = {x-a = "b", X-A = "c"}'))).problems
    assert 'key "X-A" in [webhooks[0].headers] is there twice' in str(problem)


def test_two_endpoints_have_two_names_and_there_is_a_most(tmp_path: Path) -> None:
    one = "\n".join((NAME, URL, SECRET))
    assert [str(problem) for problem in loaded(one, one).problems] == [
        'g.toml:8  webhooks[1].name = "chat": is there twice.'
    ]
    many = [one.replace("chat", f"chat-{number}") for number in range(MAX_ENDPOINTS + 1)]
    assert "endpoints, and 32 are the most" in str(loaded(*many).problems[0])


def test_nothing_of_an_endpoint_shows_but_its_name() -> None:
    (one,) = of(NAME, URL, SECRET, 'headers = {x-token = "abc"}').webhooks
    assert repr(one) == "<webhook chat>"
    assert "0123456789" not in repr(of(NAME, URL, SECRET))


@pytest.mark.parametrize(("scheme", "names"), [("https", ()), ("http", ("webhooks without TLS",))])
def test_an_endpoint_without_tls_weakens(scheme: str, names: Any) -> None:
    assert weakened(of(NAME, f'url = "{scheme}://hooks.example/"', SECRET)) == names
