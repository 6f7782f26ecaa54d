"""A real OpenID provider for tests: the example server of zitadel/oidc, a certified library, as a process.

It makes a new signing key at each start. Its user logs in with a password in the authorization code flow.
"""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from tests.support.gateway import STOP_SECONDS, wait_for
from tests.support.go_programs import go_program
from tests.support.ports import free_port

CLIENT, SECRET, SUBJECT = "web", "secret", "id1"
"""The client whose tokens these are, and the user's subject: both are built into the example."""
_CALLBACK = "http://localhost:9999/auth/callback"


class OpenIdProvider:
    """One provider at one address."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self.address = f"127.0.0.1:{self.port}"
        self._http = httpx.Client(base_url=f"http://localhost:{self.port}", timeout=60)
        self._log = folder / "openid-provider.log"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Begin to serve, with a new key; returns once it answers."""
        with self._log.open("ab") as log:
            environment = os.environ | {"PORT": str(self.port)}
            self._process = subprocess.Popen([go_program("openid-provider")], env=environment, stdout=log, stderr=log)
        wait_for(self._answers, "an OpenID provider that answers")

    def stop(self) -> None:
        """End it."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(STOP_SECONDS)
            self._process = None

    def discovered(self) -> dict[str, str]:
        """Its discovery document."""
        found: dict[str, str] = self._http.get("/.well-known/openid-configuration").json()
        return found

    def id_token(self) -> str:
        """The ID token of its user, who logs in now."""
        asked = {"client_id": CLIENT, "redirect_uri": _CALLBACK, "response_type": "code", "scope": "openid"}
        login = httpx.URL(self._http.get("/auth", params=asked | {"state": "s"}).headers["location"])
        form = {"username": "test-user@localhost", "password": "verysecure", "id": login.params["authRequestID"]}
        done = self._http.post("/login/username", data=form)
        code = httpx.URL(self._http.get(done.headers["location"]).headers["location"]).params["code"]
        form = {"grant_type": "authorization_code", "code": code, "redirect_uri": _CALLBACK}
        answer = self._http.post("/oauth/token", data=form, auth=(CLIENT, SECRET))
        assert answer.status_code == 200, answer.text
        token: str = answer.json()["id_token"]
        return token

    def close(self) -> None:
        """End it for good."""
        self.stop()
        self._http.close()

    def _answers(self) -> bool:
        try:
            return self._http.get("/keys").status_code == 200
        except httpx.TransportError:
            return False


@contextmanager
def openid_provider(folder: Path) -> Iterator[OpenIdProvider]:
    """A provider that serves until the block ends."""
    provider = OpenIdProvider(folder)
    try:
        provider.start()
        yield provider
    finally:
        provider.close()
