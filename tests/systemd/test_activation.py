"""Sockets that systemd holds: the first request starts the gateway, and a configuration with others is refused."""

import stat

from ipc.process.exits import Exit
from tests.support.systemd_box import ADMIN, CLIENT, Box, Installed, wait_state
from tests.systemd.conftest import reset

METRICS = "/run/gateway/gate-metrics.sock"


def test_the_first_request_starts_the_gateway_and_is_served(gate: Installed, inside: Box) -> None:
    reset(inside)
    inside.run("systemctl", "start", "gateway.socket", "gateway-admin.socket")
    assert inside.show("gateway", "ActiveState") == "inactive"
    answer = gate.http.get("/v1/actions")
    assert answer.status_code == 200, answer.text
    wait_state(inside, "gateway.service", "active")


def test_its_sockets_belong_to_the_groups_that_may_open_them(serving: Installed, inside: Box) -> None:
    for path, group in ((CLIENT, "gateway-agents"), (ADMIN, "gateway-operators")):
        inode = inside.path(path).stat()
        assert stat.S_IMODE(inode.st_mode) == 0o660
        number = inside.run("getent", "group", group).stdout.split(":")[2]
        assert (inode.st_uid, inode.st_gid) == (0, int(number))
    inside.run("useradd", "--system", "--groups", "gateway-agents", "an-agent")
    for path, status in ((CLIENT, "200"), (ADMIN, "000")):
        url = ("--unix-socket", path, "http://gateway/healthz")
        said = inside.run(
            "runuser", "-u", "an-agent", "--", "curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", *url, check=False
        )
        assert said.stdout == status, path


def test_the_socket_for_metrics_is_for_its_group_and_starts_the_gateway_too(gate: Installed, inside: Box) -> None:
    reset(inside)
    inside.drop_in("test-metrics", f"Environment=GATEWAY__METRICS__LISTEN_UDS_PATH={METRICS}")
    inside.run("useradd", "--system", "--groups", "gateway-metrics", "a-scraper")
    try:
        inside.run("systemctl", "start", "gateway.socket", "gateway-admin.socket", "gateway-metrics.socket")
        for path, status in ((METRICS, "200"), (CLIENT, "000"), (ADMIN, "000")):
            url = ("--unix-socket", path, "http://gateway/metrics")
            said = inside.run(
                "runuser", "-u", "a-scraper", "--", "curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", *url,
                check=False,
            )  # fmt: skip
            assert said.stdout == status, path
        wait_state(inside, "gateway.service", "active")
    finally:
        inside.run("systemctl", "stop", "gateway-metrics.socket", "gateway.service", check=False)
        reset(inside)


def test_a_stop_leaves_the_sockets_and_one_of_the_sockets_too_leaves_nothing(serving: Installed, inside: Box) -> None:
    inside.run("systemctl", "stop", "gateway.service")
    assert inside.path(CLIENT).is_socket()
    assert inside.path(ADMIN).is_socket()
    inside.run("systemctl", "stop", "gateway.socket", "gateway-admin.socket")
    assert not inside.path(CLIENT).exists()
    assert not inside.path(ADMIN).exists()


def test_a_configuration_that_names_another_socket_is_refused_once_and_not_tried_again(
    gate: Installed, inside: Box
) -> None:
    reset(inside)
    inside.drop_in("test-path", "Environment=GATEWAY__LISTEN_UDS_PATH=/run/gateway/other.sock")
    refused = inside.run("systemctl", "start", "gateway.service", check=False)
    assert refused.returncode != 0
    assert inside.show("gateway", "ExecMainStatus") == str(int(Exit.CONFIG))
    assert inside.show("gateway", "NRestarts") == "0"
    mend = "Make ListenStream= and listen_uds_path the same."
    (sentence,) = [one["MESSAGE"] for one in inside.journal() if mend in one["MESSAGE"]]
    assert sentence == (
        'gateway: the socket "gateway" listens on /run/gateway/gate.sock, and listen_uds_path = '
        f'"/run/gateway/other.sock". {mend}'
    )
    reset(inside)
