"""Two gateways, each on a host of its own, and what they share: one Redis, and one PostgreSQL or a ledger each.

Hosts are network namespaces on a bridge (hosts.py); Redis and PostgreSQL are on the third. The gateways are set up as
docs/deployment.md has it. tests/integration/conftest.py has the fixtures.
"""

import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Barrier
from typing import Any

import httpx

from ipc.process.private_files import write_private
from tests.support.gateway import Bearer, wait_for
from tests.support.hosts import Host, Network
from tests.support.manifests import PATIENT, example, open_policy, write_manifests
from tests.support.postgres_server import PostgresServer
from tests.support.production import PRINCIPAL, Credentials, Production, credentials, keep_credentials, production
from tests.support.redis_server import RedisServer

TEXT = {"text": "a"}
PASSWORD, ADMIN_PASSWORD = "the-gateways-password", "the-administrator-s-password"
RIGHTS = (Path(__file__).resolve().parents[2] / "docs" / "operations.md").read_text()
WRITE = example("file_write", risk_level="critical", **PATIENT)
CHAINS = {"postgresql": 1, "sqlite": 2}
"""Where two gateways keep their evidence, and how many chains that makes."""


@dataclass(frozen=True)
class Pair:
    """Two gateways, each on its host, and what they share on a third."""

    one: Production
    other: Production
    network: Network
    redis: RedisServer
    ledger: str
    """As CHAINS has it."""

    @property
    def both(self) -> tuple[Production, Production]:
        return self.one, self.other

    @property
    def chains(self) -> int:
        return CHAINS[self.ledger]


def redis_on(host: Host, port: int, certificate: Path, folder: Path) -> RedisServer:
    """Start one. Other hosts connect with TLS only; the gateways' user has the documented rights."""
    server = RedisServer(
        folder, "--tls-port", str(port), "--bind", host.address, "127.0.0.1",
        "--tls-cert-file", str(certificate), "--tls-key-file", str(certificate.with_name("key.pem")),
        "--tls-ca-cert-file", str(certificate), "--tls-auth-clients", "no", within=host.within, password=ADMIN_PASSWORD,
    )  # fmt: skip
    rights = RIGHTS.partition("A user needs `")[2].partition("`")[0].split()
    server.ask("ACL", "SETUSER", "gate", "on", f">{PASSWORD}", "~{gateway}:*", *rights)
    return server


def postgres_on(host: Host, certificate: Path) -> PostgresServer:
    """Start one. Other hosts connect to its one database with TLS and a password only."""
    server = PostgresServer(f"listen_addresses = '127.0.0.1, {host.address}'", within=host.within)
    files = {"server.crt": certificate, "server.key": certificate.with_name("key.pem")}
    server.admit("hostssl ledger gate samenet scram-sha-256", **files)
    for statement in (
        "ALTER SYSTEM SET ssl = on", "SELECT pg_reload_conf()", f"CREATE ROLE gate LOGIN PASSWORD '{PASSWORD}'",
        "CREATE DATABASE ledger OWNER gate",
    ):  # fmt: skip
        server.ask(statement)
    wait_for(lambda: server.ask("SHOW ssl") == [("on",)], "a PostgreSQL that speaks TLS")
    return server


@contextmanager
def pair_on(
    hosts: Network, redis: tuple[RedisServer, int], postgres: PostgresServer | None, certificate: Path, files: Path,
    folders: Sequence[Path],
) -> Iterator[Pair]:  # fmt: skip
    """Two gateways that share the Redis, which others reach at this port, and the PostgreSQL where there is one: the
    operators of the first one, and its lease key, or all keys where the ledger is shared; all else is their own. The
    path `files` is a separate folder on each host."""
    redis_server, redis_port = redis
    started, is_shared = list[Production](), postgres is not None
    ledger = "" if postgres is None else shared_ledger(postgres, hosts, certificate)
    redis_server.ask("FLUSHALL")
    share_credentials(folders[0], folders[1], ["*.pem"] if is_shared else ["lease.pem"])
    with ExitStack() as stack:
        for folder, host in zip(folders, hosts.hosts, strict=False):
            write_manifests(folder / "actions", example("text_digest", **PATIENT), WRITE)
            data = open_policy(folder / "policy") / "data.json"
            policy = json.loads(data.read_text())
            policy["acl"][PRINCIPAL] = policy["acl"]["dev:anonymous"]
            data.write_text(json.dumps(policy))
            (folder / "files").mkdir()
            write_private(folder / "password", f"{PASSWORD}\n".encode())
            top = f'manifests_dir = "{folder / "actions"}"\npolicy_dir = "{folder / "policy"}"\n'
            top += f'files_dir = "{files}"\nlease_ttl_seconds = 3600\n'
            url = f"rediss://gate@{hosts.hosts[2].address}:{redis_port}"
            store = f'[store]\nredis_url = "{url}"\nredis_ca_file = "{certificate}"\n'
            store += f'redis_password_file = "{folder / "password"}"\n'
            if is_shared:
                store += f'{ledger}password_file = "{folder / "password"}"\n'
            else:
                store += f'[evidence]\norigin = "gateway.conformance.test/{host.address}"\n'
            within = host.within_with(folder / "files", files)
            started.append(stack.enter_context(production(folder, top, store, within=within)))
        yield Pair(started[0], started[1], hosts, redis_server, "postgresql" if is_shared else "sqlite")


def shared_ledger(server: PostgresServer, hosts: Network, certificate: Path) -> str:
    """The table of the configuration, but for the password."""
    url = f"postgresql://gate@{hosts.hosts[2].address}:{server.port}/ledger"
    return f'[ledger]\nurl = "{url}"\nca_file = "{certificate}"\n'


def share_credentials(first: Path, second: Path, keys: Sequence[str]) -> None:
    """Copy the keys and the operators' file, as an operator does."""
    ours, theirs = credentials(first), credentials(second)
    copied = [path for pattern in keys for path in (first / "keys" / "keys").glob(pattern)]
    copied += [] if keys == ["lease.pem"] else (first / "keys").glob("*.jwks.json")
    for path in copied:
        shutil.copy(path, second / path.relative_to(first))
    keep_credentials(second, Credentials(theirs.settings, ours.operators, ours.api_key, ours.private_key_file))


def at(gate: Production, agent: Bearer) -> Bearer:
    """The same lease and key at this gateway."""
    return Bearer(gate.http, gate.base, agent.token, agent.prover, agent.session_id)


def at_once(*calls: Callable[[], httpx.Response]) -> list[httpx.Response]:
    """All of them begin in the same instant."""
    gate = Barrier(len(calls))

    def begin(call: Callable[[], httpx.Response]) -> httpx.Response:
        gate.wait(60)
        return call()

    with ThreadPoolExecutor(len(calls)) as threads:
        return list(threads.map(begin, calls))


def events(gate: Production) -> list[dict[str, Any]]:
    """All that a host's ledger has."""
    return gate.events(limit=1000)
