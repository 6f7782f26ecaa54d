"""`gateway dev --console`: a real gateway, its console, and a browser that follows the link."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from supervisor.dev.console import FILE
from tests.support.browser import Browser
from tests.support.console_process import go
from tests.support.gateway import ANSWER_SECONDS, Gateway, gateway, wait_for


@pytest.fixture
def gate(tmp_path: Path) -> Iterator[Gateway]:
    with gateway(tmp_path, flags=["--console"]) as running:
        yield running


class Link:
    """The link of a gateway."""

    def __init__(self, gate: Gateway) -> None:
        self.url: str = gate.ready["console"]
        self.origin, _, self.secret = self.url.partition("/#/sign-in/")

    def use(self, secret: str, **headers: str) -> httpx.Response:
        """Ask as the page does."""
        return httpx.post(
            f"{self.origin}/sign-in", json={"secret": secret}, headers=headers, timeout=ANSWER_SECONDS, trust_env=False
        )


def test_the_link_signs_in_the_first_browser_that_follows_it_and_no_other(page: Browser, gate: Gateway) -> None:
    link = Link(gate)
    page.open(link.url)
    page.sees("Overview")
    assert page.run("location.href") == f"{link.origin}/"
    go(page, "key", "dpop_jkt")
    assert "can be copied out\nno" in page.text()
    page.open("about:blank")
    page.open(link.url)
    page.sees("This link has been used")
    assert link.use(link.secret).json() == {"error": "link_used"}
    page.write("API key of dev", gate.ready["operator"]["key"])
    page.press("Enter")
    page.sees("Overview")
    log = gate.log.read_text()
    assert "signed in by the link" in log
    assert link.secret not in log
    assert gate.ready["operator"]["key"] not in log


def test_nothing_but_the_secret_from_the_consoles_own_page_uses_the_link(gate: Gateway) -> None:
    link = Link(gate)
    wait_for(lambda: not (gate.state / FILE).exists(), "a console that has read the secret")
    for secret in ("", "x", link.secret[:-1], "é"):
        assert (link.use(secret).status_code, link.use(secret).json()) == (403, {"error": "link_used"})
    foreign = link.use(link.secret, Origin="https://evil.example")
    assert (foreign.status_code, foreign.json()) == (403, {"error": "foreign_request"})
    assert link.use(link.secret, Host="localhost").status_code == 403
    assert httpx.post(f"{link.origin}/sign-in", content=b"[]", trust_env=False).status_code == 400
    brought = link.use(link.secret, Origin=link.origin)
    assert (brought.status_code, brought.headers["cache-control"]) == (200, "no-store")
    assert brought.json()["api_key"] == gate.ready["operator"]["key"]


def test_a_console_that_is_started_again_serves_the_page_without_a_link(gate: Gateway) -> None:
    link = Link(gate)
    wait_for(lambda: not (gate.state / FILE).exists(), "a console that has read the secret")
    (first,) = gate.children("console")
    first.kill()
    wait_for(lambda: first not in gate.children("console"), "its end")
    assert httpx.get(f"{link.origin}/", timeout=ANSWER_SECONDS, trust_env=False).status_code == 200
    assert link.use(link.secret).status_code == 404
