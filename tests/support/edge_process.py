"""A real `gateway edge` for tests."""

import ssl
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from tests.support.gateway import ANSWER_SECONDS, START_SECONDS
from tests.support.processes import GATEWAY
from tests.support.serving_process import ServingProcess, serving_process

PUBLIC = "https://gate.example"


@dataclass
class Edge(ServingProcess):
    """An edge that serves."""

    roots: Path | None
    """Certificates by which clients know it."""
    clients: list[httpx.Client] = field(default_factory=list)

    @property
    def port(self) -> int:
        return int(self.address.rpartition(":")[2])

    def trusting(self, certificate: Path | None = None) -> ssl.SSLContext:
        """TLS of a client; `certificate` is its own, with the key in the same file."""
        context = ssl.create_default_context(cafile=self.roots)
        if certificate is not None:
            context.load_cert_chain(certificate)
        return context

    def client(self, certificate: Path | None = None, *, http2: bool = False, **settings: Any) -> httpx.Client:
        """A client on another host."""
        verify = False if self.roots is None else self.trusting(certificate)
        client = httpx.Client(
            base_url=self.address, timeout=ANSWER_SECONDS, verify=verify, http1=not http2, http2=http2,
            trust_env=False, **settings,
        )  # fmt: skip
        self.clients.append(client)
        return client


def edge_config(
    folder: Path, client_socket: str | Path, more: str = "", *, listen: str = "127.0.0.1:0", public: str = PUBLIC
) -> Path:
    """The configuration `edge.toml` in a folder; `more` is TOML behind its first keys."""
    file = folder / "edge.toml"
    top = f'listen = "{listen}"\npublic_base_url = "{public}"\nclient_socket = "{client_socket}"\n'
    file.write_text(top + more)
    return file


def edge_tells(config: Path, *arguments: str) -> tuple[int, str]:
    """Exit code and texts of an edge that serves nothing."""
    done = subprocess.run(
        [GATEWAY, "edge", "--config", config, *arguments], capture_output=True, text=True, timeout=START_SECONDS,
        check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


@contextmanager
def edge(config: Path, roots: Path | None = None, within: Sequence[str] = ()) -> Iterator[Edge]:
    """Serve until the block ends; `within` is the start of a command (hosts.py)."""
    with serving_process(config.with_suffix(".log"), ["edge", "--config", str(config)], "address", within) as one:
        running = Edge(one.process, one.address, one.log, roots)
        try:
            yield running
        finally:
            for client in running.clients:
                client.close()
