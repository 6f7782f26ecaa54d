"""A real production gateway for tests: `gateway run` on both Unix sockets, with keys from `gateway keys make`.

Its files are made in one folder, as an operator would make them: keys, one operator bound to a key, the test's own
user mapped to a principal, manifests and policy.
"""

import os
import re
import socket
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from tests.support.gateway import (
    ANSWER_SECONDS,
    START_SECONDS,
    Gateway,
    gone_afterwards,
    stopped_afterwards,
    wait_for,
)  # fmt: skip
from tests.support.modules import give_modules, keep_modules
from tests.support.processes import GATEWAY

PUBLIC_URL = "https://gateway.conformance.test"
PRINCIPAL = "conformance-agent"
OPERATOR = "ann"


@dataclass
class Production(Gateway):
    """One running `gateway run`. `http` speaks to the client socket, `admin` to the admin socket."""

    admin: httpx.Client | None = None

    @property
    def operators(self) -> httpx.Client:
        """Where operators connect."""
        assert self.admin is not None
        return self.admin


@dataclass(frozen=True)
class Credentials:
    """The output of `gateway keys make`."""

    settings: str
    """Lines for the top of the configuration."""
    operators: str
    """The `[[operators]]` table."""
    api_key: str
    private_key_file: str


def make_keys(folder: Path, operator: str = OPERATOR) -> Credentials:
    """Make keys and an operator's credential in `folder`."""
    done = subprocess.run(
        [GATEWAY, "keys", "make", str(folder), "--operator", operator],
        check=True, capture_output=True, text=True, timeout=START_SECONDS, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    settings = "".join(f"{line}\n" for line in done.stdout.splitlines() if re.match(r"\w+_path = ", line))
    operators = "[[operators]]\n" + "".join(
        f"{line}\n" for line in done.stdout.splitlines() if re.match(r"(name|api_key_sha256|dpop_jkt) = ", line)
    )
    key = re.search(rf"^key-{re.escape(operator)}-[0-9a-f]{{32}}$", done.stdout, re.MULTILINE)
    assert key is not None
    return Credentials(settings, operators, key[0], str(folder / "operator.pem"))


def settings_for(folder: Path, *, public_base_url: str = PUBLIC_URL) -> dict[str, str]:
    """The settings that a production gateway in `folder` needs besides its keys: name -> TOML text."""
    return {
        "state_dir": f'"{folder / "state"}"',
        "public_base_url": f'"{public_base_url}"',
        "listen_uds_path": f'"{folder / "gate.sock"}"',
        "listen_admin_uds_path": f'"{folder / "gate-admin.sock"}"',
    }


def mapping(uid: int, principal: str = PRINCIPAL, scopes: tuple[str, ...] = ("tools:call",)) -> str:
    """The table that maps a user id to a principal."""
    listed = ", ".join(f'"{scope}"' for scope in scopes)
    return f'[identity.peercred.principals.{uid}]\nprincipal = "{principal}"\nscopes = [{listed}]\nowner = "team"\n'


@contextmanager
def production(
    folder: Path, top: str, tables: str = "", *, within: Sequence[str] = (), program: str = str(GATEWAY),
    **environment: str,
) -> Iterator[Production]:  # fmt: skip
    """Run `gateway run` in `folder` until the block ends; again in the same folder, it has the same keys and state.

    `top` and `tables` are TOML: settings, then tables. Without `[identity` in `tables` the user of this process is
    mapped. `program` is what does as the command line, `within` its start, for a gateway in a network of its own.
    """
    folder.mkdir(parents=True, exist_ok=True)
    keys = credentials(folder)
    settings = settings_for(folder)
    lines = "".join(f"{name} = {value}\n" for name, value in settings.items() if f"{name} = " not in top)
    identity = "" if "[identity" in tables else mapping(os.geteuid())
    config = folder / "gateway.toml"
    config.write_text(f"{lines}{top}\n{keys.settings}\n{identity}\n{tables}\n{keys.operators}")
    give_modules(folder / "state")
    log = folder / "gateway.log"
    with log.open("ab") as errors:
        process = subprocess.Popen(
            [*within, program, "run", "--config", str(config)],
            stdout=subprocess.DEVNULL, stderr=errors, stdin=subprocess.DEVNULL, text=True,
            env=os.environ | environment,
        )  # fmt: skip
    ready: dict[str, Any] = {
        name: str(value).strip('"') for name, value in settings.items()
    } | {
        "base_url": "http://localhost",
        "client_socket": str(folder / "gate.sock"), "admin_socket": str(folder / "gate-admin.sock"),
        "operator": {"name": OPERATOR, "key": keys.api_key, "private_key_file": keys.private_key_file},
    }  # fmt: skip
    with gone_afterwards(process), over(ready["client_socket"]) as http, over(ready["admin_socket"]) as admin:
        running = Production(process, ready, log, http, admin=admin)
        wait_for(lambda: _serves(running), "a production gateway that serves", START_SECONDS)
        keep_modules(running.state)
        with stopped_afterwards(running):
            yield running


def over(path: str) -> httpx.Client:
    """A client on a Unix socket."""
    transport = httpx.HTTPTransport(uds=path, verify=False)
    return httpx.Client(transport=transport, base_url="http://localhost", timeout=ANSWER_SECONDS)


def credentials(folder: Path) -> Credentials:
    """The credentials of this folder: made once, because the API key is shown once."""
    folder.mkdir(parents=True, exist_ok=True)
    kept = folder / "credentials"
    if not kept.exists():
        keep_credentials(folder, make_keys(folder / "keys"))
    return Credentials(*kept.read_text().split("\0"))


def keep_credentials(folder: Path, made: Credentials) -> None:
    """Give this folder these."""
    (folder / "credentials").write_text("\0".join((made.settings, made.operators, made.api_key, made.private_key_file)))


def _serves(gate: Production) -> bool:
    code = gate.process.poll()
    assert code is None, f"the gateway ended with {code}; its log:\n{gate.log.read_text()[-4000:]}"
    with socket.socket(socket.AF_UNIX) as probe:  # httpx leaves a socket open when no server answers
        if probe.connect_ex(gate.ready["client_socket"]) != 0:
            return False
    return gate.http.get("/readyz").status_code == 200
