"""The socket of `[metrics]`: a scraper reads it without a credential, gets nothing else and starves no other client."""

import os
import stat
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from frontend.api.routes import ROUTES
from tests.support.gateway import ANSWER_SECONDS, config_for, gateway, wait_for
from tests.support.manifests import example, open_policy, write_manifests
from tests.support.ports import free_port
from tests.support.production import Production, over, production
from tests.support.upstream import Upstream

AT_ONCE = 48
"""Scrapes that arrive together: a front reads the heads of so many long before the bucket lets them all through."""


@pytest.fixture(scope="module")
def gate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Production]:
    """A production gateway that is scraped over a Unix socket."""
    folder = tmp_path_factory.mktemp("scraped")
    write_manifests(folder / "actions", example("text_digest"))
    top = f'manifests_dir = "{folder / "actions"}"\npolicy_dir = "{open_policy(folder / "policy", "text_digest")}"\n'
    with production(folder, top, f'[metrics]\nlisten_uds_path = "{folder / "metrics.sock"}"\n') as running:
        yield running


@pytest.fixture(scope="module")
def scraper(gate: Production) -> Iterator[httpx.Client]:
    with over(str(gate.log.parent / "metrics.sock")) as client:
        yield client


def scraped(scraper: httpx.Client) -> httpx.Response:
    """One answer that is no 429: other tests of this module draw from the same bucket."""
    answer: httpx.Response = wait_for(
        lambda: answer if (answer := scraper.get("/metrics")).status_code != 429 else None, "a scrape"
    )
    return answer


def samples(answer: httpx.Response) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(answer.text)  # type: ignore[no-untyped-call]
        for sample in family.samples
    }


def test_a_scraper_reads_without_a_credential_what_operators_read_with_one(
    gate: Production, scraper: httpx.Client
) -> None:
    theirs, ours = gate.operator().get("/metrics"), scraped(scraper)
    assert (ours.status_code, ours.headers["content-type"]) == (200, theirs.headers["content-type"])
    assert {line for line in ours.text.splitlines() if line.startswith("# ")} == {
        line for line in theirs.text.splitlines() if line.startswith("# ")
    }
    assert samples(ours)["gate_http_connections", (("listener", "metrics"),)] >= 1


def test_only_metrics_are_answered_there(scraper: httpx.Client) -> None:
    paths = {route.path for route in ROUTES} - {"/metrics"} | {"/", "/metrics/", "/metrics/x"}
    codes = {path: scraper.get(path).status_code for path in sorted(paths)}
    assert codes == dict.fromkeys(codes, 404)
    for method in ("POST", "PUT", "DELETE"):
        refused = scraper.request(method, "/metrics")
        assert (refused.status_code, refused.headers["allow"]) == (405, "GET, HEAD")


def test_its_file_is_for_the_gateway_s_user_and_group_alone(gate: Production) -> None:
    assert stat.S_IMODE(os.stat(gate.log.parent / "metrics.sock").st_mode) == 0o660


def test_a_scraper_in_a_loop_meets_its_own_rate_and_takes_nothing_from_operators(
    gate: Production, scraper: httpx.Client
) -> None:
    limited = ("gate_rate_limited_total", (("class", "scrape"),))
    before = samples(scraped(scraper)).get(limited, 0)
    with ThreadPoolExecutor(AT_ONCE) as threads:
        answers = list(threads.map(lambda _: scraper.get("/metrics"), range(AT_ONCE)))
        read = gate.operator().get("/metrics")
    assert read.status_code == 200, "an operator reads on"
    assert gate.operator().get("/v1/admin/status").status_code == 200
    refused = [answer for answer in answers if answer.status_code != 200]
    assert {(one.status_code, one.headers["retry-after"], one.json()["error"]) for one in refused} == {
        (429, "1", "rate_limit_exceeded")
    }
    assert samples(read)[limited] - before == len(refused)


def test_the_front_that_follows_one_which_was_killed_answers_on_the_same_socket(
    gate: Production, scraper: httpx.Client
) -> None:
    inode = os.stat(gate.log.parent / "metrics.sock").st_ino
    gate.child("front").kill()

    def answers() -> bool:
        try:
            return scraper.get("/metrics").status_code == 200
        except httpx.TransportError:
            return False

    wait_for(answers, "an answer of the next front")
    assert os.stat(gate.log.parent / "metrics.sock").st_ino == inode
    wait_for(lambda: gate.http.get("/readyz").status_code == 200, "a ready gateway")


def test_by_tcp_only_requests_that_are_meant_for_it_are_answered(up: Upstream, tmp_path: Path) -> None:
    address = f"127.0.0.1:{free_port()}"
    config = config_for(up.address, f'[metrics]\nlisten = "{address}"\n')
    with (
        gateway(tmp_path, config) as running,
        httpx.Client(base_url=f"http://{address}", timeout=ANSWER_SECONDS) as scraper,
    ):
        assert scraper.get("/metrics").status_code == 200
        for foreign in ({"Host": "evil.test"}, {"Host": f"evil.test:{address[10:]}"}, {"Origin": "http://evil.test"}):
            refused = scraper.get("/metrics", headers=foreign)
            assert (refused.status_code, refused.json()["error"]) == (403, "foreign_host")
        assert scraper.get("/v1/actions").status_code == 404
        assert running.http.get("/metrics").status_code == 401, "the merged address asks for a credential, as ever"
        assert scraper.get("/readyz").status_code == 404
