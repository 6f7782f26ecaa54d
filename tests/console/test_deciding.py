"""An operator at the page: a real browser, console and gateway, from the first key to the signed receipt."""

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from gateway_client import OperatorClient, OperatorCredential

from tests.support.browser import CONTROLS, Browser
from tests.support.console_process import Console, console, go
from tests.support.gateway import Bearer, Gateway, gateway, wait_for
from tests.support.manifests import PATIENT, all_examples, example, open_policy, write_manifests
from tests.support.upstream import Upstream, upstream

VIEWS = (
    ("overview", "payment_transfer"),
    ("held", "payment_transfer"), ("decisions", "payment_transfer"), ("audit", "payment_transfer"),
    ("actions", "payment_transfer"), ("actions/payment_transfer", "upstream.gateway.test"), ("policy", "actions"),
    ("sessions", "dev:anonymous"), ("explain", "What was decided"),
    ("key", "dpop_jkt"),
)  # fmt: skip
HOSTILE = "<img src=x onerror=hacked()> {{7*7}} ${7*7} \u202egpj.exe\u2066 \x07 \u200b'\"&amp;"
HOST = "one.gateway.test"
ANY_HOST = example(
    "http_fetch", action_id="any_host", template={"url_template": "http://{host}/"},
    io={"request_schema": {"required": ["host"], "properties": {"host": {"type": "string"}}}}, **PATIENT,
)  # fmt: skip
DESCRIPTION = "<img src=x onerror=hacked()> {{7*7}} '\"&amp;"
LONG = f"{HOSTILE} {'long' * 2000}"


@pytest.fixture(scope="module")
def up() -> Iterator[Upstream]:
    with upstream() as server:
        yield server


@pytest.fixture(scope="module")
def gate(up: Upstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway that requires the operator's own signature for a decision."""
    folder = tmp_path_factory.mktemp("gate")
    free = {
        "request_schema": {"type": "object", "properties": {"text": {"type": "string"}}},
        "max_request_bytes": 65_536,
    }
    manifests = all_examples(
        folder / "actions", text_digest={"risk_level": "high", "description": DESCRIPTION, "io": free}
    )  # fmt: skip
    write_manifests(manifests, ANY_HOST)
    policy = open_policy(folder / "policy", "any_host")
    settings = f'manifests_dir = "{manifests}"\npolicy_dir = "{policy}"\nlease_ttl_seconds = 3600\n'
    names = "".join(f'"{name}" = "{up.address}"\n' for name in (HOST, "upstream.gateway.test"))
    rest = f"[approvals]\nrequire_signature = true\n[egress.unsafe_resolve]\n{names}"
    with gateway(folder, settings + rest) as running:
        yield running


@pytest.fixture(scope="module")
def served(gate: Gateway, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    with console(tmp_path_factory.mktemp("console"), "--state-dir", str(gate.state)) as running:
        yield running


class Registered:
    """The browser's key, as the page has shown it once."""

    def __init__(self, page: Browser, one: Console, gate: Gateway) -> None:
        self.page, self.origin = page, one.origin
        page.open(one.origin)
        page.write("Operator's name", "ann")
        page.press("Enter")
        page.sees("Register this browser's key")
        self.api_key = str(page.run("document.getElementById('made').value"))
        lines = str(page.run("document.querySelector('pre').textContent"))
        self.thumbprint = lines.rpartition('dpop_jkt = "')[2].rstrip('"')
        with (gate.state.parent / "gateway.toml").open("a") as configuration:
            configuration.write(f"\n{lines}\n")
        assert gate.operator().post("/v1/admin/reload").status_code == 200

    def sign_in(self, view: str = "held") -> None:
        self.page.open(f"{self.origin}/#/{view}")
        self.page.write("API key", self.api_key)
        self.page.press("Enter")
        self.page.find("button", "Lock")
        told = "document.getElementById('state').childElementCount > 0"
        wait_for(lambda: self.page.run(told), "the line above the views, which moves all that is below it")


@pytest.fixture(scope="module")
def registered(only_browser: Browser, served: Console, gate: Gateway) -> Registered:
    only_browser.resize(1024, 768)
    return Registered(only_browser, served, gate)


@pytest.fixture
def agent(gate: Gateway) -> Bearer:
    return gate.agent(5)


def held(agent: Bearer, action: str, **body: Any) -> str:
    answer = agent.execute(action, body)
    assert answer.status_code == 202, answer.text
    return str(answer.json()["approval_id"])


def polled(agent: Bearer, approval_id: str) -> dict[str, Any]:
    return dict(agent.get(f"/v1/approvals/{approval_id}/poll").json())


def test_what_is_held_shows_exactly_and_is_approved_with_the_key_of_the_browser(
    page: Browser, registered: Registered, gate: Gateway, up: Upstream
) -> None:
    gate.operator().post("/v1/admin/revoke-all")  # ends what other tests have held
    agent, before = gate.agent(5), len(up.seen)
    registered.sign_in()
    page.sees("Nothing waits.")
    approval_id = held(agent, "payment_transfer", to="acct-7", amount_cents=25000, currency="EUR")
    page.sees(approval_id)
    page.click("link", "payment_transfer")
    page.sees('{"amount_cents":25000,"currency":"EUR","to":"acct-7"}')
    page.sees("Transfers an amount to an account. Waits for an operator's approval.")
    detail = gate.operator().get(f"/v1/approvals/{approval_id}").json()
    shown = page.run(
        "Object.fromEntries([...document.querySelectorAll('[data-all] > div')].map("
        "(row) => [row.children[0].textContent, JSON.parse(row.children[1].textContent)]))"
    )
    assert shown == detail
    page.click("button", "Approve")
    page.sees(detail["shown_hash"])
    page.click("button", "Sign and approve")
    page.sees("Approved, ran, and as it should be")
    assert [json.loads(one.body) for one in up.seen[before:]] == [detail["request"]]
    told = polled(agent, approval_id)
    receipt = gate.operator().get(f"/v1/receipts/{told['receipt_id']}").json()
    assert (told["state"], receipt["approval"]["operator_jkt"]) == ("approved", registered.thumbprint)
    assert receipt["approval"]["signature"]
    page.click("link", told["receipt_id"])
    page.sees("verified")


def test_a_call_that_counts_for_a_cap_shows_how_it_stands_and_is_signed_without_that(
    page: Browser, registered: Registered, gate: Gateway, agent: Bearer
) -> None:
    cap = {
        "action_id": "payment_transfer", "pointer": "/amount_cents", "per": "all", "window_seconds": 3600,
        "deny_above": 5_000_000,
    }  # fmt: skip
    assert gate.operator().post("/v1/admin/policy/caps", cap).status_code == 200
    approval_id = held(agent, "payment_transfer", to="acct-9", amount_cents=20, currency="EUR")
    held(agent, "payment_transfer", to="acct-9", amount_cents=300, currency="EUR")
    registered.sign_in(f"held/{approval_id}")
    page.sees("/amount_cents per all within 3600 s: 320 with this call, 300 without it; denied above 5000000")
    page.click("button", "Deny")
    page.click("button", "Sign and deny")
    page.sees("Denied; nothing ran")


def test_what_is_denied_does_not_run_and_the_agent_reads_why(
    page: Browser, registered: Registered, agent: Bearer, up: Upstream
) -> None:
    before = len(up.seen)
    approval_id = held(agent, "payment_transfer", to="acct-8", amount_cents=1, currency="EUR")
    registered.sign_in(f"held/{approval_id}")
    page.write("Reason", f"no {HOSTILE}")
    page.click("button", "Deny")
    page.sees("Deny this call?")
    page.press("Escape")
    wait_for(lambda: "Deny this call?" not in page.text(), "the end of the question")
    assert polled(agent, approval_id)["state"] == "pending"
    page.click("button", "Deny")
    page.click("button", "Sign and deny")
    page.sees("Denied; nothing ran")
    told = polled(agent, approval_id)
    assert (told["state"], told["deny_reason"].startswith("no <img src=x onerror")) == ("denied", True)
    assert len(up.seen) == before


def test_a_domain_is_learned_with_the_approval_only_where_its_box_is_ticked(
    page: Browser, registered: Registered, gate: Gateway, agent: Bearer
) -> None:
    for ticks in (False, True):
        approval_id = held(agent, "any_host", host=HOST)
        registered.sign_in(f"held/{approval_id}")
        if ticks:
            page.click("checkbox", f"Approving also lets every later call of this action use the domain {HOST}")
        page.click("button", "Approve")
        page.click("button", "Sign and approve")
        page.sees("Approved, ran, and as it should be")
    (rule,) = gate.operator().get("/v1/admin/domains?action=any_host").json()["domains"]
    assert (rule["domain"], rule["added_by"]) == (HOST, "ann")
    assert agent.execute("any_host", {"host": HOST}).status_code == 200


def test_a_call_that_somebody_else_decides_can_not_be_decided_any_more(
    page: Browser, registered: Registered, gate: Gateway, agent: Bearer
) -> None:
    approval_id = held(agent, "payment_transfer", to="acct-9", amount_cents=1, currency="EUR")
    registered.sign_in(f"held/{approval_id}")
    page.find("button", "Approve")
    gate.operator().post("/v1/admin/revoke-all")
    page.sees("expired")
    wait_for(lambda: "Approve" not in page.text(), "the end of the form")


def test_hostile_texts_are_shown_and_never_obeyed(
    page: Browser, registered: Registered, gate: Gateway, agent: Bearer
) -> None:
    approval_id = held(agent, "text_digest", text=LONG)
    registered.sign_in(f"held/{approval_id}")
    page.sees("<img src=x onerror=hacked()> {{7*7}} ${7*7} \\u202egpj.exe\\u2066")
    page.click("button", "Show all of the request")
    page.sees("long" * 2000)
    for view in ("held", "decisions", "audit", "actions", "actions/text_digest"):
        go(page, view, "text_digest")
        page.run("for (const one of document.querySelectorAll('details')) one.open = true")
        assert page.run("document.querySelectorAll('img, iframe, object, style, main script').length") == 0
        assert page.run("/[\\u202e\\u2066\\u200b\\u0007]/.test(document.documentElement.textContent)") is False


def test_the_key_can_not_be_taken_out_and_the_api_key_is_nowhere_kept(page: Browser, registered: Registered) -> None:
    registered.sign_in("key")
    page.sees(registered.thumbprint)
    told = page.run(
        """(async () => {
        const { kept } = await import("/keys.js");
        const about = await (await fetch("/console.json")).json();
        const { key, ...others } = await kept(about.public_base_url);
        const taken = await Promise.all(["jwk", "pkcs8"].map((form) =>
          crypto.subtle.exportKey(form, key).then(() => "taken", (error) => error.name)));
        return { taken, extractable: key.extractable, usages: key.usages, others: JSON.stringify(others),
          databases: (await indexedDB.databases()).map((one) => one.name),
          stored: JSON.stringify([localStorage, sessionStorage]) + document.cookie + location.href };
        })()"""
    )
    assert (told["taken"], told["extractable"], told["usages"]) == (["InvalidAccessError"] * 2, False, ["sign"])
    assert told["databases"] == ["gateway-console"]
    assert registered.api_key not in told["others"] + told["stored"]
    page.click("button", "Lock")
    page.sees("Sign in")
    assert registered.thumbprint in page.text()
    assert (
        page.run("import('/api.js').then((api) => api.get('/v1/approvals')).catch((error) => error.code)") == "locked"
    )
    page.write("API key", registered.api_key[:-1] + ("0" if registered.api_key[-1] != "0" else "1"))
    page.press("Enter")
    page.sees("does not know this API key")


def test_every_view_has_names_for_its_controls_and_fits_a_telephone(
    page: Browser, registered: Registered, agent: Bearer
) -> None:
    approval_id = held(agent, "payment_transfer", to="acct-7", amount_cents=1, currency="EUR")
    registered.sign_in()
    trace = registered_trace(page)
    for view, text in (*VIEWS, (f"held/{approval_id}", "Deny"), (f"call/{trace}", "Why")):
        page.resize(390, 844, "dark" if view == "held" else "light")
        go(page, view, text)
        page.run("for (const one of document.querySelectorAll('details')) one.open = true")
        nodes = page.nodes()
        assert [(role, name) for role, name, _ in nodes if role in CONTROLS and not name] == []
        roles = [role for role, _, _ in nodes]
        assert [roles.count(one) for one in ("main", "banner", "navigation")] == [1, 1, 1]
        assert page.run("document.querySelectorAll('h1').length") == 1
        assert page.run("document.documentElement.scrollWidth") <= 390, view
        assert page.run("[...document.querySelectorAll('[tabindex]')].every((one) => one.tabIndex <= 0)")
        assert page.run("document.activeElement.tagName") == "H1", "the view is read out from its heading"


def registered_trace(page: Browser) -> str:
    go(page, "decisions", "payment_transfer")
    link = "[...document.querySelectorAll('.event a')].map((one) => one.hash).find((one) => one.startsWith('#/call/'))"
    return str(wait_for(lambda: page.run(link), "a link to a call")).removeprefix("#/call/")


def test_keys_alone_lead_from_the_top_to_a_decision(page: Browser, registered: Registered, agent: Bearer) -> None:
    approval_id = held(agent, "payment_transfer", to="acct-7", amount_cents=2, currency="EUR")
    registered.sign_in(f"held/{approval_id}")
    page.find("button", "Deny")
    for _ in range(30):
        page.press("Tab")
        if page.run("document.activeElement.textContent").startswith("Deny"):
            break
    page.press("Enter")
    page.sees("Deny this call?")
    assert page.run("document.activeElement.textContent") == "Go back"
    page.press("Enter")
    wait_for(lambda: "Deny this call?" not in page.text(), "the dialog to close")
    assert page.run("document.activeElement.textContent").startswith("Deny")


def test_a_session_is_ended_from_its_card_once_it_is_confirmed(
    page: Browser, registered: Registered, gate: Gateway
) -> None:
    agent = gate.agent(7)
    registered.sign_in("sessions?principal=dev:anonymous")
    page.sees(agent.session_id)
    page.sees("7 of 7")
    revoke = f"Revoke the session of dev:anonymous, {agent.session_id}"
    page.click("button", revoke)
    page.sees("End this session?")
    page.press("Enter")
    wait_for(lambda: "End this session?" not in page.text(), "the dialog to close")
    assert agent.execute("text_digest", {}).status_code != 401
    page.click("button", revoke)
    page.sees("End this session?")
    page.press("Tab")
    page.press("Enter")
    wait_for(lambda: agent.session_id not in page.text(), "the list without it")
    assert agent.execute("text_digest", {}).status_code == 401
    (event,) = [one for one in gate.events(session_id=agent.session_id) if one["event_type"] == "SessionRevoked"]
    assert event["principal"] == "operator:ann"


def test_standing_approvals_are_listed_beside_the_access_lists(
    page: Browser, registered: Registered, gate: Gateway
) -> None:
    credential = OperatorCredential.load(gate.state / "operator.key", gate.state / "operator.pem")
    where = [{"pointer": "/currency", "op": "in", "value": ["EUR", "USD"]}]
    with OperatorClient(gate.base, credential) as operator:
        until = int(time.time()) + 3600
        added = operator.add_standing("payment_transfer", "agent:b", until, max_calls=7, where=where)
        registered.sign_in("policy")
        for text in ("payment_transfer by agent:b", "0 of 7", "/currency in", added.standing_id):
            page.sees(text)
        operator.revoke_standing(added.standing_id)


def test_what_policy_would_say_is_explained_without_a_call(
    page: Browser, registered: Registered, agent: Bearer, gate: Gateway
) -> None:
    held(agent, "payment_transfer", to="acct-9", amount_cents=3, currency="EUR")
    registered.sign_in()
    go(page, f"call/{registered_trace(page)}", "What policy would say")
    page.click("link", "What policy would say of a call like this now")
    page.sees("schema_violation")
    before = len(gate.events(action_id="payment_transfer"))
    page.write("Request", '{"to": "acct-7", "amount_cents": 1, "currency": "EUR"}')
    page.click("button", "Explain")
    page.sees("hold_high_risk")
    page.sees("pending_approval")
    page.write("Request", '{"to": "acct-8", "to": "acct-7", "amount_cents": 1, "currency": "EUR"}')
    page.click("button", "Explain")
    page.sees("(body): duplicate_key")
    page.write("Request", "[]")
    page.click("button", "Explain")
    page.sees("must be a JSON object")
    page.write("Request", "{}")
    page.write("Action", "payment_transfr")
    page.click("button", "Explain")
    page.sees("No such action.")
    assert len(gate.events(action_id="payment_transfer")) == before


def test_the_audit_hides_leases_unless_they_are_asked_for_takes_dates_and_finds_its_chain_intact(
    page: Browser, registered: Registered, agent: Bearer
) -> None:
    held(agent, "text_digest", text="x")
    event_types = "[...document.querySelectorAll('.event strong')].map((one) => one.textContent)"
    registered.sign_in("audit")
    assert "LeaseIssued" not in wait_for(lambda: page.run(event_types), "events")
    go(page, "audit?leases=shown", "LeaseIssued")
    go(page, "audit?event_type=LeaseIssued", "LeaseIssued")
    go(page, "audit?after=2099-01-01T00:00", "None found.")
    go(page, "audit?before=2001-01-01T00:00:30", "None found.")
    go(page, "audit?after=2001-01-01T00:00", "text_digest")
    go(page, "audit?event_type=AdminReload", "AdminReload")
    assert set(page.run(event_types)) == {"AdminReload"}
    page.click("button", "Check the whole chain")
    page.sees("intact")
