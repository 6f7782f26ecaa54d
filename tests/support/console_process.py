"""A real `gateway console` for tests."""

import ssl
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from tests.support.browser import Browser
from tests.support.gateway import ANSWER_SECONDS, START_SECONDS, wait_for
from tests.support.processes import GATEWAY
from tests.support.serving_process import ServingProcess, serving_process


@dataclass
class Console(ServingProcess):
    """A console that serves."""

    http: httpx.Client

    @property
    def origin(self) -> str:
        """Where browsers reach it."""
        return self.address

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> httpx.Response:
        """A request as the page makes it, with an API key and what looks like a proof; `headers` (underscores for
        dashes) come on top, an empty one is left out."""
        sent = {"Authorization": f"DPoP key-ann-{'0' * 32}", "DPoP": "header.claims.signature"}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        sent = {name: value for name, value in sent.items() if value}
        return self.http.request(method, path, json=body, headers=sent)


def go(page: Browser, view: str, text: str) -> None:
    """Follow a link to a view of the page, and wait until it shows this text: there, not in what stood there before."""
    page.run("document.querySelector('main .view').classList.add('before')")
    page.run(f"location.hash = '#/{view}'")
    shown = "document.querySelector('main .view:not(.before)')?.innerText ?? ''"
    wait_for(lambda: text in page.run(shown), f"{text} in the view {view}; it says: {page.run(shown)}")


def refused(*arguments: str) -> tuple[int, str]:
    """Exit code and sentence of a command line that starts nothing."""
    done = subprocess.run(
        [GATEWAY, "console", *arguments], capture_output=True, text=True, timeout=START_SECONDS, check=False,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    return done.returncode, done.stderr


@contextmanager
def console(
    folder: Path, *arguments: str, listen: str = "127.0.0.1:0", certificate: Path | None = None
) -> Iterator[Console]:
    """Serve until the block ends, by TLS with a certificate of tests/support/certificates.py."""
    words = ["console", "--listen", listen, *arguments]
    if certificate is not None:
        words += ["--tls-certificate", str(certificate), "--tls-key", str(certificate.parent / "key.pem")]
    with serving_process(folder / "console.log", words, "address") as one:
        transport = httpx.HTTPTransport(uds=listen.removeprefix("unix:")) if listen.startswith("unix:") else None
        # Without a certificate TLS is the reverse proxy's, in whose place this client is.
        base = one.address if certificate is not None else one.address.replace("https://", "http://")
        verify = True if certificate is None else ssl.create_default_context(cafile=str(certificate))
        with httpx.Client(base_url=base, timeout=ANSWER_SECONDS, transport=transport, verify=verify) as http:
            yield Console(one.process, one.address, one.log, http)
