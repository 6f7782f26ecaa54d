"""Restarts and reloads under load: clients that connect anew all the time, and none of them hears no."""

from tests.support.gateway import wait_for
from tests.support.systemd_box import Box, Installed
from tests.systemd.load import load

REQUESTS = 10_000
RESTARTS = 2
RELOADS = 4
LOAD_SECONDS = 1200.0


def test_of_ten_thousand_requests_through_two_restarts_none_fails(serving: Installed, inside: Box) -> None:
    pids = {inside.show("gateway", "MainPID")}
    with load(serving, REQUESTS) as clients:
        for number in range(1, RESTARTS + 1):
            wait_for(lambda: clients.count >= number * REQUESTS // (RESTARTS + 2), "requests", LOAD_SECONDS)  # noqa: B023
            inside.run("systemctl", "restart", "gateway.service")
            pids.add(inside.show("gateway", "MainPID"))
        clients.wait(LOAD_SECONDS)
    assert not clients.failures, clients.failures[:5]
    assert sum(clients.served.values()) == REQUESTS
    assert len(pids) == RESTARTS + 1
    assert inside.show("gateway", "NRestarts") == "0", "none of them was a crash"


def test_reloads_under_load_fail_no_request_and_are_told_to_systemd(serving: Installed, inside: Box) -> None:
    with load(serving, REQUESTS) as clients:
        for number in range(1, RELOADS + 1):
            inside.run("systemctl", "reload", "gateway.service")
            wait_for(lambda: len(inside.journal("MESSAGE=reloaded")) >= number, "a reload", LOAD_SECONDS)  # noqa: B023
    assert not clients.failures, clients.failures[:5]
    assert clients.served
    assert inside.show("gateway", "ActiveState") == "active"


def test_after_a_crash_whoever_connected_meanwhile_is_served_by_the_next_gateway(
    serving: Installed, inside: Box
) -> None:
    before, processes = inside.show("gateway", "MainPID"), inside.processes("gateway.service")
    inside.run("kill", "-KILL", before)
    wait_for(lambda: not processes.keys() & inside.processes("gateway.service").keys(), "its end", LOAD_SECONDS)
    assert serving.http.get("/readyz").status_code == 200
    assert inside.show("gateway", "MainPID") not in (before, "0")
    assert serving.agent().execute("text_digest", {"text": "x"}).status_code == 200
