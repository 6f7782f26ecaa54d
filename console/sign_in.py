"""The sign-in by a link that `gateway dev --console` prints: the dev operator's keys, for the first page that has the
link's secret, once.

SECURITY: for development alone. The supervisor writes the file, private to its user, who has the keys anyway; it is
gone before anything is served. Neither secret nor key is in a log line.
"""

import base64
import hmac
from pathlib import Path

import msgspec

from frontend.http.answers import Answer, json_answer
from frontend.telemetry.logs import log
from ipc.process.private_files import read_private

PATH = "/sign-in"


class SignInFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The file's content (supervisor/dev/console.py)."""

    secret: str
    name: str
    api_key: str
    private_key_file: str


class _Asked(msgspec.Struct, frozen=True):
    secret: str


class SignInLink:
    """One link. Raises OSError and PrivateFileError for the file, which it removes, and for the key's."""

    def __init__(self, file: Path) -> None:
        given = msgspec.json.decode(read_private(file), type=SignInFile)
        file.unlink()
        self._secret = given.secret
        key = _der(read_private(Path(given.private_key_file)))
        self._answer: Answer | None = json_answer(
            200, {"name": given.name, "api_key": given.api_key, "private_key": base64.b64encode(key).decode()}
        )

    def used(self, body: bytes) -> Answer:
        """The operator's keys when the link is first used; a refusal after that, and for another secret."""
        try:
            secret = msgspec.json.decode(body, type=_Asked).secret
        except msgspec.MsgspecError:
            return json_answer(400, {"error": "bad_request"})
        answer = self._answer
        if answer is None or not hmac.compare_digest(secret.encode(), self._secret.encode()):
            log.warning("a sign-in link was refused")
            return json_answer(403, {"error": "link_used"})
        self._answer = None
        log.info("signed in by the link")
        return answer


def _der(pem: bytes) -> bytes:
    """The bytes of a key in PEM (PKCS #8)."""
    return base64.b64decode(b"".join(line for line in pem.splitlines() if not line.startswith(b"-")))
