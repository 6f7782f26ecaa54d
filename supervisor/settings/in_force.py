"""Digests of the settings in force in a running gateway, kept for `gateway check --against-running`.

One digest a setting, in a private file of the state directory, written at the start and with each reload that changes
any, gone with the gateway. SECURITY: each digest is keyed by a salt of its own file; a setting that may hold a secret
in clear costs as much to try as a password would.
"""

import hashlib
import os
import secrets
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final

import msgspec

from ipc.process.exits import Exit
from ipc.reloadable import RELOADABLE, named_values
from ipc.settings import Settings
from supervisor.logs import log
from supervisor.refusal import Refused
from supervisor.state_dir import LOCK_NAME

FILE_NAME: Final = "in-force.json"
_MAY_HOLD_SECRETS: Final = frozenset({"webhooks", "egress_proxy_url"})
_SALT_BYTES: Final = 16
_encode = msgspec.json.Encoder(order="deterministic").encode


class InForce(msgspec.Struct, frozen=True):
    """The content of the file."""

    pid: int
    """The supervisor's."""
    salt: str
    settings: dict[str, str]
    """Name -> digest."""


class PendingSettings(msgspec.Struct, frozen=True):
    """Names of settings that the file says otherwise than the running gateway has them, by what they wait for."""

    reload: tuple[str, ...]
    restart: tuple[str, ...]

    def __str__(self) -> str:
        if not self.reload and not self.restart:
            return "the running gateway has these settings in force"
        parts = (("a reload", self.reload), ("a restart", self.restart))
        told = [f"{what} is needed for {', '.join(names)}" for what, names in parts if names]
        return f"not in force in the running gateway: {'; '.join(told)}"


def keep_in_force(state_dir: Path, settings: Settings) -> None:
    """Write the file; `settings` are as the configuration says them. A failure is logged: nothing is decided by it."""
    salt = secrets.token_bytes(_SALT_BYTES)
    kept = InForce(os.getpid(), salt.hex(), _digests(settings, salt))
    path = state_dir / FILE_NAME
    fresh = path.with_suffix(".new")
    try:
        fresh.unlink(missing_ok=True)
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(_encode(kept))
        fresh.replace(path)
    except OSError as error:
        log.warning(
            "the settings in force were not written down: gateway check --against-running will not work",
            cause=error.strerror,
        )
        _remove(path)


def forget_at_end(state_dir: Path, cleanup: ExitStack) -> None:
    """Remove the file when `cleanup` ends."""
    cleanup.callback(_remove, state_dir / FILE_NAME)


def compare_with_running(settings: Settings) -> PendingSettings:
    """Compare these settings of a file with those of the gateway that runs with this state directory.

    Raises Refused if no gateway runs, or if the settings in force can't be read.
    """
    kept = _read(Path(settings.state_dir))
    digests = _digests(settings, bytes.fromhex(kept.salt))
    names = sorted(name for name, digest in digests.items() if kept.settings.get(name) != digest)
    return PendingSettings(
        tuple(name for name in names if name in RELOADABLE), tuple(name for name in names if name not in RELOADABLE)
    )  # fmt: skip


def _read(state_dir: Path) -> InForce:
    none = Refused(Exit.UNAVAILABLE, f"no gateway runs with the state directory {state_dir}.")
    try:
        kept = msgspec.json.decode((state_dir / FILE_NAME).read_bytes(), type=InForce)
        holder = (state_dir / LOCK_NAME).read_text().strip()
        title = Path(f"/proc/{kept.pid}/cmdline").read_bytes()
    except PermissionError as error:
        sentence = f"the state directory {state_dir} can't be read: {error.strerror}. Run this as the gateway's user."
        raise Refused(Exit.NO_PERMISSION, sentence) from None
    except (OSError, ValueError):
        raise none from None
    # A gateway that was killed leaves its file behind, and its process id may be in use again.
    if holder != str(kept.pid) or not title.startswith(b"gateway: supervisor"):
        raise none
    return kept


def _digests(settings: Settings, salt: bytes) -> dict[str, str]:
    return {name: _digest(name, value, salt) for name, value in named_values(settings)}


def _digest(name: str, value: object, salt: bytes) -> str:
    content = _encode((name, value))
    if name in _MAY_HOLD_SECRETS and value:
        return hashlib.scrypt(content, salt=salt, n=1 << 14, r=8, p=1).hex()
    return hashlib.blake2b(content, key=salt, digest_size=32).hexdigest()


def _remove(path: Path) -> None:
    with suppress(OSError):
        path.unlink(missing_ok=True)
