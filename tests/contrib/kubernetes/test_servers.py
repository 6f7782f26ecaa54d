"""Redis and PostgreSQL of contrib/kubernetes/edge, by their settings and the commands of docs/kubernetes.md: the
gateway takes both in production."""

import os
import shutil
import subprocess
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from bench.servers import USER, postgres_programs, redis_program
from ipc.settings import LedgerSettings, Settings, StoreSettings
from notary.backends.postgres.fitness import problem_of_postgres
from notary.backends.redis.fitness import problem_of_redis
from tests.support.certificates import made_certificate
from tests.support.gateway import wait_for
from tests.support.kubernetes import base, one_of, resources
from tests.support.manifests import REPOSITORY
from tests.support.pod_contents import pod_of
from tests.support.pods import Pod
from tests.support.ports import free_port
from tests.support.postgres_server import PostgresServer

ADDRESS = "127.0.0.1"
"""For which the certificate is."""
ROLE = "ledgers"
"""In the place of `gateway`, which is the administrator of a PostgreSQL of tests."""
EDGE = resources(base("edge"))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The passwords and the users of Redis, by the commands of the document, and a certificate."""
    folder = tmp_path_factory.mktemp("made")
    text = (REPOSITORY / "docs" / "kubernetes.md").read_text()
    lines = text[text.index("$ rights=") : text.index("$ kubectl -n gateway create secret generic gateway-redis")]
    script = "set -eu\n" + lines.replace("$ ", "", 1).replace("\n$ ", "\n")
    subprocess.run(["bash", "-c", script], cwd=folder, check=True, timeout=60)
    made_certificate(folder, ADDRESS)
    for file in folder.iterdir():
        file.chmod(0o600)
    return folder


def test_the_redis_of_the_chart_will_do(made: Path, tmp_path: Path) -> None:
    if os.geteuid() != 0:
        if os.environ.get("CI") == "true":
            pytest.fail("a pod is played by root, and this is not")
        pytest.skip("a pod is played by root: its containers have users of their own")
    port = free_port()
    config = one_of(EDGE, "ConfigMap", "gateway-redis")["data"]["redis.conf"]
    given = {
        "redis.conf": config.replace("tls-port 6379", f"tls-port {port}").encode(),
        "users.acl": (made / "users.acl").read_bytes(),
        "tls.crt": (made / "certificate.pem").read_bytes(),
        "tls.key": (made / "key.pem").read_bytes(),
        "ca.crt": (made / "certificate.pem").read_bytes(),
    }
    spec = one_of(EDGE, "StatefulSet", "gateway-redis")["spec"]["template"]["spec"]
    spec["containers"][0]["command"][0] = redis_program()
    pod = Pod(spec, {"gateway-redis": given}, tmp_path / "pod")
    store = StoreSettings(
        redis_url=f"rediss://gate@{ADDRESS}:{port}", redis_ca_file=str(made / "certificate.pem"),
        redis_password_file=str(made / "redis-password"),
    )  # fmt: skip
    settings = Settings(state_dir=str(made), public_base_url="https://gateway.example", store=store)
    with pod.running("redis") as process:

        def will_do() -> bool:
            assert process.poll() is None, pod.log("redis").read_text()
            return problem_of_redis(settings) is None

        wait_for(will_do, "a Redis that will do", 60)


def test_the_postgresql_of_the_chart_will_do(made: Path, tmp_path: Path) -> None:
    data = one_of(EDGE, "ConfigMap", "gateway-postgres")["data"]
    with closing(PostgresServer()) as server:
        script = data["ledger.sh"].replace("/etc/postgres/secret/password", str(made / "postgres-password"))
        script = script.replace(" gateway ", f" {ROLE} ")
        environment = {"PATH": f"{postgres_programs()}:{os.environ['PATH']}", "PGHOST": str(server.folder),
                       "PGPORT": str(server.port), "PGUSER": USER, "PGDATABASE": "postgres"}  # fmt: skip
        subprocess.run(["sh", "-c", script], check=True, capture_output=True, timeout=60, env=os.environ | environment)
        local, remote = data["pg_hba.conf"].replace(" gateway ", f" {ROLE} ").splitlines()
        assert local == "local all postgres peer"
        server.admit(remote, **{"server.crt": made / "certificate.pem", "server.key": made / "key.pem"})
        (server.data / "pg_hba.conf").write_text(f"local all all trust\n{remote}\n")
        for statement in ("ALTER SYSTEM SET ssl = on", "SELECT pg_reload_conf()"):
            server.ask(statement)
        wait_for(lambda: server.ask("SHOW ssl") == [("on",)], "a PostgreSQL that speaks TLS")
        ledger = LedgerSettings(
            url=f"postgresql://{ROLE}@{ADDRESS}:{server.port}/ledger", ca_file=str(made / "certificate.pem"),
            password_file=str(made / "postgres-password"),
        )  # fmt: skip
        settings = Settings(state_dir=str(made), public_base_url="https://gateway.example", ledger=ledger)
        wait_for(
            lambda: problem_of_postgres(settings) is None, f"one that will do: {problem_of_postgres(settings)}", 60
        )
        other = tmp_path / "password"
        shutil.copy(made / "redis-password", other)
        wrong = msgspec.structs.replace(settings, ledger=msgspec.structs.replace(ledger, password_file=str(other)))
        assert "password authentication failed" in str(problem_of_postgres(wrong))


@pytest.mark.parametrize("name", ["redis", "postgres"])
def test_the_gateway_reads_password_and_root_of_a_server_and_none_of_its_keys(name: str) -> None:
    (volume,) = [one for one in pod_of("edge")["volumes"] if one["name"] == name]
    assert [one["key"] for one in volume["secret"]["items"]] == ["password", "ca.crt"]
