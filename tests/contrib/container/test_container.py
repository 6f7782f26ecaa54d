"""contrib/container: settings that the gateway takes, walls that stay, a Redis that is fit, the tree of the image."""

import fnmatch
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from bench.servers import redis_program
from ipc.settings import Settings, StoreSettings
from notary.backends.redis.fitness import problem_of_redis
from supervisor.settings.checks.production import DRAIN_SECONDS, broken_rules
from supervisor.settings.config import check, open_document
from tests.support.gateway import wait_for

ROOT = Path(__file__).resolve().parents[3]
FOLDER = ROOT / "contrib" / "container"
COMPOSE: dict[str, Any] = yaml.safe_load((FOLDER / "compose.yaml").read_text())
WITH_OPA: dict[str, Any] = yaml.safe_load((FOLDER / "compose.opa.yaml").read_text())
CONTAINERFILE = (FOLDER / "Containerfile").read_text()
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"] | {"opa": WITH_OPA["services"]["opa"]}
GATEWAY = COMPOSE["services"]["gateway"]
NEVER = {
    "add_key", "bpf", "finit_module", "init_module", "io_uring_setup", "kexec_load", "keyctl", "open_by_handle_at",
    "perf_event_open", "pivot_root", "process_vm_readv", "ptrace", "reboot", "setns", "syslog", "umount2",
    "userfaultfd",
}  # fmt: skip
ENVIRONMENT: dict[str, str] = GATEWAY["environment"] | WITH_OPA["services"]["gateway"]["environment"]


def settings() -> Settings:
    """The settings from the environment of the container, beside the two that every gateway needs."""
    loaded = check(*open_document(None, ENVIRONMENT | {"GATEWAY__PUBLIC_BASE_URL": "https://gateway.example"}))
    assert loaded.settings is not None, loaded.problems
    return loaded.settings


def test_every_setting_of_the_compose_files_is_one_that_the_gateway_takes_in_production() -> None:
    config = settings()
    named = {str(finding.path[0]) for finding in broken_rules(config)}
    made_by_init = {"operators", "receipt_signing_key_path", "grant_signing_key_path", "receipt_keys_jwks_path"}
    assert named == made_by_init, "and all else is safe"
    mounted = {volume.split(":")[1] for volume in GATEWAY["volumes"]}
    mounted |= {volume.split(":")[1] for volume in WITH_OPA["services"]["gateway"]["volumes"]}
    places = [config.state_dir, config.listen_uds_path, config.listen_admin_uds_path, config.metrics.listen_uds_path,
              config.egress.proxy_allowlist_file, config.store.redis_password_file]  # fmt: skip
    urls = [str(config.store.redis_url).partition("@")[2], str(config.opa_url).removeprefix("unix://")]
    for place in (*map(str, places), *urls):
        assert any(place == one or place.startswith(f"{one}/") for one in mounted), place


@pytest.mark.parametrize("name", sorted(SERVICES))
def test_each_container_is_confined(name: str) -> None:
    service = SERVICES[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert any(option.startswith("no-new-privileges") for option in service["security_opt"])
    assert service["user"].partition(":")[0] not in ("", "0", "root")
    assert service["pids_limit"] > 0
    assert not {"privileged", "cap_add", "devices", "pid", "ipc", "userns_mode", "ports"} & set(service)


def test_the_proxy_is_the_only_way_out() -> None:
    assert COMPOSE["networks"]["inside"] == {"internal": True}
    ways = {name: service.get("networks", [service.get("network_mode")]) for name, service in SERVICES.items()}
    assert ways == {"gateway": ["inside"], "egress": ["inside", "outside"], "redis": ["none"], "opa": ["none"]}


def test_a_stop_leaves_running_calls_their_time_and_health_is_asked_of_the_gateway_itself() -> None:
    assert int(GATEWAY["stop_grace_period"].removesuffix("s")) >= DRAIN_SECONDS + 5
    assert GATEWAY["healthcheck"]["test"] == ["CMD", "gateway", "status", "--config", "/etc/gateway/gateway.toml"]
    assert '"gateway", "status", "--config", "/etc/gateway/gateway.toml"' in CONTAINERFILE
    assert GATEWAY["init"] is False, "it is the first process"


def test_the_profile_of_system_calls_leaves_what_walls_are_built_with_and_no_way_around_them() -> None:
    assert "seccomp=seccomp.json" in GATEWAY["security_opt"]
    profile = json.loads((FOLDER / "seccomp.json").read_text())
    assert profile["defaultAction"] == "SCMP_ACT_ERRNO"
    (allowed,) = profile["syscalls"]
    assert allowed["action"] == "SCMP_ACT_ALLOW"
    names = set(allowed["names"])
    units = ((ROOT / "contrib" / "systemd" / part).read_text()
             for part in ("gateway.service", "gateway.service.d/walls.conf"))  # fmt: skip
    lines = re.findall(r"^SystemCallFilter=([a-z].*)$", "\n".join(units), re.MULTILINE)
    needed = {call for line in lines for call in line.split()}
    assert {"unshare", "mount", "chroot", "seccomp", "landlock_restrict_self"} <= needed <= names
    assert not names & NEVER


def directives(path: Path) -> set[str]:
    return {line for line in path.read_text().splitlines() if line and not line.startswith("#")}


def test_the_proxy_differs_from_the_documented_one_by_its_port_and_its_files_alone() -> None:
    ours, documented = directives(FOLDER / "squid.conf"), directives(ROOT / "contrib" / "squid" / "gateway.conf")
    assert documented - ours == {
        "http_port 127.0.0.1:3128", "access_log stdio:/var/log/squid/access.log whole !question"
    }  # fmt: skip
    assert {line.partition(" ")[0] for line in ours - documented} == {
        "http_port", "access_log", "cache_log", "pid_filename", "pinger_enable", "coredump_dir"
    }  # fmt: skip
    assert settings().egress_proxy_url == "http://egress:3128"


def test_the_proxy_writes_only_where_every_engine_gives_it_room() -> None:
    """Podman puts a /run of its own over that of the file, where only root may write."""
    room = {one.partition(":")[0] for one in SERVICES["egress"]["tmpfs"]}
    assert room == {"/tmp", "/var/spool/squid"}
    said = dict(line.split(" ", 1) for line in directives(FOLDER / "squid.conf") if line.count(" ") >= 1)
    assert said["pid_filename"] == "none"
    assert said["cache_log"] == "stdio:/dev/stderr"
    assert said["access_log"].startswith("stdio:/dev/stdout ")
    assert said["coredump_dir"] in room


@pytest.fixture
def prepared(tmp_path: Path) -> Iterator[Path]:
    """The files that prepare.sh makes, which needs root; CI has them."""
    if os.geteuid() != 0:
        if os.environ.get("CI") == "true":
            pytest.fail("prepare.sh needs root, and this is not")
        pytest.skip("prepare.sh needs root: folders are for other users")
    for _ in range(2):  # the second time changes nothing but what is made of the password
        subprocess.run([FOLDER / "prepare.sh", tmp_path / "data"], check=True, capture_output=True, timeout=60)
    yield tmp_path / "data"
    shutil.rmtree(tmp_path / "data")


def test_what_is_prepared_is_what_is_mounted_and_a_redis_that_the_gateway_takes(prepared: Path) -> None:
    for service in SERVICES.values():
        for volume in service["volumes"]:
            source = volume.partition(":")[0]
            assert (prepared / source.removeprefix("./data/") if "/data/" in source else FOLDER / source).exists()
    config, log = prepared / "redis.conf", prepared / "redis.log"
    text = (FOLDER / "redis.conf").read_text()
    for inside, here in (
        ("/run/redis/", f"{prepared}/redis-socket/"),
        ("dir /data", f"dir {prepared}/redis/data"),
        ("/etc/gateway-redis/users.acl", f"{prepared}/redis/users.acl"),
    ):
        assert inside in text
        text = text.replace(inside, here)
    config.write_text(text)
    with log.open("wb") as output:
        server = subprocess.Popen([redis_program(), str(config)], stdout=output, stderr=subprocess.STDOUT)
    try:
        wait_for((prepared / "redis-socket" / "redis.sock").is_socket, "a Redis", 60)
        password = prepared / "etc" / "redis-password"
        os.chown(password, 0, 0)  # the gateway of this test is root
        store = StoreSettings(
            redis_url=f"unix://gate@{prepared}/redis-socket/redis.sock", redis_password_file=str(password)
        )
        adjusted = msgspec.structs.replace(settings(), store=store)
        wait_for(lambda: problem_of_redis(adjusted) is None, f"a Redis that will do: {problem_of_redis(adjusted)}", 60)
    finally:
        server.kill()
        server.wait(30)


def test_prepared_again_no_link_of_a_container_s_user_is_followed(prepared: Path) -> None:
    """Root writes into folders whose owners may put anything there."""
    files = {name: prepared.parent / name for name in ("redis-password.new", "users.acl.new", "users.acl")}
    for file in files.values():
        file.write_text("mine")
    folder = prepared.parent / "folder"
    folder.mkdir(0o755)
    (prepared / "etc" / "redis-password").unlink()
    (prepared / "redis" / "users.acl").unlink()
    (prepared / "etc" / "policy").rmdir()
    (prepared / "etc" / "policy").symlink_to(folder)
    (prepared / "etc" / "redis-password.new").symlink_to(files["redis-password.new"])
    for name in ("users.acl.new", "users.acl"):
        (prepared / "redis" / name).symlink_to(files[name])
    subprocess.run([FOLDER / "prepare.sh", prepared], check=True, capture_output=True, timeout=60)
    assert {(file.read_text(), file.stat().st_uid) for file in files.values()} == {("mine", os.getuid())}
    assert (folder.stat().st_uid, folder.stat().st_mode & 0o777) == (os.getuid(), 0o755)
    made = (prepared / "etc" / "redis-password", prepared / "redis" / "users.acl")
    assert [(file.lstat().st_uid, file.lstat().st_mode) for file in made] == [(10001, 0o100600), (10002, 0o100600)]


def ignored(path: str, rules: list[str]) -> bool:
    """As .dockerignore is read: the last rule that fits decides."""
    is_ignored = False
    for rule in rules:
        pattern = rule.removeprefix("!").removeprefix("**/")
        parts = path.split("/")
        heads = ["/".join(parts[: count + 1]) for count in range(len(parts))]
        if any(fnmatch.fnmatchcase(one, pattern) for one in (parts if "**/" in rule else heads)):
            is_ignored = not rule.startswith("!")
    return is_ignored


def test_the_image_is_built_of_what_its_context_has_and_the_package_is_whole(tmp_path: Path) -> None:
    rules = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and not line.startswith("#")]
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True).stdout.split(
        "\n"
    )
    context = [path for path in listed if path and (ROOT / path).is_file() and not ignored(path, rules)]
    for path in context:
        (tmp_path / "source" / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, tmp_path / "source" / path)
    for source in re.findall(r"^COPY (?!--from)(.+) \S+$", CONTAINERFILE, re.MULTILINE):
        assert all((tmp_path / "source" / one).exists() for one in source.split()), source
    script = re.search(r"^RUN (sed .+) > build\.lock", CONTAINERFILE, re.MULTILINE)
    assert script is not None
    lock = subprocess.run(
        ["sh", "-c", script[1]], cwd=tmp_path / "source", check=True, capture_output=True, text=True, timeout=60
    ).stdout
    assert re.fullmatch(r"setuptools==\S+ \\\n( +--hash=sha256:\S+( \\)?\n)+", lock), lock
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir",
         str(tmp_path / "wheels"), "."],
        cwd=tmp_path / "source", check=True, capture_output=True, timeout=600,
    )  # fmt: skip
    (wheel,) = (tmp_path / "wheels").glob("*.whl")
    packed = set(zipfile.ZipFile(wheel).namelist())
    rooms = ("contract/", "ipc/", "supervisor/", "frontend/", "notary/", "workers/", "witness/", "contrib/")
    installed = [path for path in listed if path.startswith(rooms) and not path.startswith("contrib/demo/")]
    missing = [path for path in installed if f"action_gateway/{path}" not in packed]
    assert not missing
    assert "action_gateway/launch.py" in packed
