"""One systemd for all of these tests, with the gateway installed in it as docs/operations.md says."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.support.checked import rewrite_yaml
from tests.support.manifests import PATIENT
from tests.support.systemd_box import Box, Installed, box, installed, missing


@pytest.fixture(scope="session")
def inside() -> Iterator[Box]:
    """A systemd. Where this machine can't boot one the tests are skipped with the reason; in CI they fail."""
    if reason := missing():
        if os.environ.get("CI") == "true":
            pytest.fail(f"no systemd to test with: {reason}")
        pytest.skip(reason)
    with box() as booted:
        yield booted


@pytest.fixture(scope="session")
def gate(inside: Box) -> Iterator[Installed]:
    """The gateway, installed and not started; calls have a time limit, and leases a life, that no machine is too slow
    for."""
    with installed(inside) as gateway:
        settings = inside.path("/etc/gateway/gateway.toml")
        settings.write_text(f"lease_ttl_seconds = 3600\n{settings.read_text()}")
        manifest = inside.path("/etc/gateway/actions/spin.yaml")
        limits = yaml.safe_load(manifest.read_text())["resource_limits"]
        rewrite_yaml(manifest, resource_limits=limits | PATIENT["resource_limits"])
        yield gateway


@pytest.fixture
def serving(gate: Installed, inside: Box) -> Installed:
    """The gateway, started by its sockets and its unit as they came, whatever a test before left."""
    if changes(inside):
        reset(inside)
    inside.run("systemctl", "start", "gateway.socket", "gateway-admin.socket", "gateway.service")
    return gate


def changes(inside: Box) -> list[Path]:
    """The unit's settings that a test has changed."""
    return list(inside.path("/etc/systemd/system/gateway.service.d").glob("test-*.conf"))


def reset(inside: Box) -> None:
    """Stop it, and take back what a test changed of the unit."""
    inside.run("systemctl", "stop", "gateway.socket", "gateway-admin.socket", "gateway.service")
    inside.run("systemctl", "reset-failed", check=False)
    if changed := changes(inside):
        for one in changed:
            one.unlink()
        inside.run("systemctl", "daemon-reload")
