"""Manifests that change beside a gateway, and the commands of `gateway` that tell of them and bring them back."""

import hashlib
import io
import json
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from supervisor.cli import main
from tests.support.gateway import Gateway, wait_for
from tests.support.manifests import example, write_manifests
from tests.support.production import Production


@dataclass(frozen=True)
class Ended:
    """The outcome of a command."""

    returncode: int
    stdout: str
    stderr: str


def named(gate: Gateway) -> list[str]:
    """The options that name this gateway."""
    dev = [] if isinstance(gate, Production) else ["--state-dir", str(gate.state)]
    return [*dev, "--config", str(gate.log.parent / "gateway.toml")]


def command(gate: Gateway, *words: str) -> Ended:
    """Run a command of `gateway` for this gateway, which need not run. It runs in this process."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main([*words, *named(gate)])
    return Ended(code, out.getvalue(), err.getvalue())


def done(gate: Gateway, *words: str) -> str:
    ended = command(gate, *words)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def has_copies(gate: Gateway, action: str) -> None:
    """Return once the start has left its copies: an edit before that leaves none of the file as it was."""
    words = ("actions", "history", action)
    wait_for(lambda: command(gate, *words).returncode == 0, "the copies of the start")


def digest(path: Path) -> str:
    return f"sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}"


def write_action(folder: Path, name: str, **changes: Any) -> str:
    """Write the manifest of a text_digest of this name; returns its digest."""
    write_manifests(folder, example("text_digest", action_id=name, **changes))
    return digest(folder / f"{name}.yaml")


@dataclass(frozen=True)
class ChangingAction:
    """An action whose manifest, a text_digest, is changed and brought back."""

    gate: Gateway
    folder: Path
    name: str

    @property
    def place(self) -> Path:
        return self.folder / f"{self.name}.yaml"

    def change(self, **changes: Any) -> str:
        """Write it with these changes; returns its digest."""
        return write_action(self.folder, self.name, **changes)

    def history(self) -> list[dict[str, Any]]:
        """Its manifests that were in force, newest first."""
        told: list[dict[str, Any]] = json.loads(done(self.gate, "actions", "history", self.name, "--json"))
        return told

    def called(self) -> dict[str, Any]:
        """The event of a call that is made now."""
        answer = self.gate.agent().execute(self.name, {"text": "hello"})
        assert answer.status_code == 200, answer.text
        (event,) = self.gate.events(trace_id=answer.json()["trace_id"], event_type="ActionCall")
        return event

    def rollbacks(self) -> list[dict[str, Any]]:
        """The events of its rollbacks."""
        return [one for one in self.gate.events(event_type="ActionRolledBack") if one["action_id"] == self.name]
