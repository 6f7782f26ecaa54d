"""gatectl as tests run it: the console script as a process, or the same code in this one where it is about output."""

import contextlib
import fcntl
import io
import json
import os
import pty
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gateway_client.cli.desk import CliContext
from gateway_client.cli.main import run

from tests.support.readable import readable

SCRIPT = str(Path(sys.executable).with_name("gatectl"))
SECONDS = 120
INTERRUPT = "\x03"


@dataclass(frozen=True)
class Ran:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def lines(self) -> list[Any]:
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def error(self) -> dict[str, Any]:
        """The one JSON object on standard error."""
        (line,) = self.err.splitlines()
        error: dict[str, Any] = json.loads(line)
        return error


@dataclass(frozen=True)
class Gatectl:
    """gatectl with an environment of its own: `home` is where its contexts lie."""

    home: Path
    environment: tuple[tuple[str, str], ...] = ()

    def with_environment(self, **variables: str) -> "Gatectl":
        return replace(self, environment=(*self.environment, *variables.items()))

    @property
    def environ(self) -> dict[str, str]:
        strange = ("GATECTL_", "CREDENTIALS_DIRECTORY", "NO_COLOR", "XDG_CONFIG_HOME", "COLUMNS")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(strange)}
        own = {"XDG_CONFIG_HOME": str(self.home), "XDG_STATE_HOME": str(self.home / "state"), "TERM": "xterm"}
        return kept | own | dict(self.environment)

    @property
    def contexts_file(self) -> Path:
        return self.home / "gatectl" / "contexts.toml"

    def process(self, *arguments: str, stdin: str = "") -> Ran:
        """The console script, to its end."""
        done = subprocess.run(
            [SCRIPT, *arguments], input=stdin, capture_output=True, text=True, timeout=SECONDS, env=self.environ
        )
        return Ran(done.returncode, done.stdout, done.stderr)

    def here(self, *arguments: str, desk: CliContext | None = None) -> Ran:
        """The same code in this process, without a terminal."""
        before, out, err = dict(os.environ), _written(), _written()
        os.environ.clear()
        os.environ.update(self.environ)
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                code = _code_of(list(arguments), desk)
        finally:
            os.environ.clear()
            os.environ.update(before)
        return Ran(code, _read(out), _read(err))

    def done(self, *arguments: str) -> Ran:
        """`here`, and it must have gone well."""
        ran = self.here(*arguments)
        assert ran.code == 0, ran.err
        return ran

    @contextmanager
    def started(self, *arguments: str) -> "Iterator[subprocess.Popen[str]]":
        """The console script, running; killed at the end of the block."""
        process = subprocess.Popen(
            [SCRIPT, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=self.environ,
        )  # fmt: skip
        try:
            yield process
        finally:
            process.kill()
            process.communicate(timeout=60)

    def on_terminal(
        self, *arguments: str, answer: str = "", until: str = "", then: Callable[[], object] | None = None,
        columns: int = 80, program: Sequence[str] = (SCRIPT,),
    ) -> Ran:  # fmt: skip
        """The console script, or another `program`, on a terminal of its own. `out` has all.

        Once `until` stands there, `then` is called and `answer` is typed.
        """
        ours, theirs = pty.openpty()
        termios.tcsetwinsize(theirs, (24, columns))
        try:
            process = subprocess.Popen(
                [*program, *arguments], stdin=theirs, stdout=theirs, stderr=theirs, env=self.environ,
                start_new_session=True,
                preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # or Ctrl-C would be a character
            )  # fmt: skip
        finally:
            os.close(theirs)
        text, is_typed, end = b"", not answer and then is None, time.monotonic() + SECONDS
        try:
            while time.monotonic() < end:
                if not readable(ours, 1.0):
                    if is_typed and answer == INTERRUPT:  # it may have come just before the program began to read
                        os.write(ours, answer.encode())
                    continue
                try:
                    text += os.read(ours, 65536)
                except OSError:  # the last of them has closed it
                    break
                if not is_typed and until.encode() in text:
                    if then is not None:
                        then()
                    os.write(ours, answer.encode())
                    is_typed = True
            return Ran(process.wait(max(0.1, end - time.monotonic())), text.decode().replace("\r\n", "\n"), "")
        finally:
            process.kill()
            process.wait(60)
            os.close(ours)


def _code_of(arguments: list[str], desk: CliContext | None) -> int:
    try:
        return int(run(arguments, desk))
    except SystemExit as left:  # completion leaves by itself
        return int(left.code or 0)


def _written() -> io.TextIOWrapper:
    """A stream for text and for bytes, as a real one is."""
    return io.TextIOWrapper(io.BytesIO(), "utf-8", newline="", write_through=True)


def _read(stream: io.TextIOWrapper) -> str:
    assert isinstance(stream.buffer, io.BytesIO)
    return stream.buffer.getvalue().decode()


def pointed_at(gatectl: Gatectl, url: str) -> Gatectl:
    """The same with another gateway's address; key files stay those of the context."""
    return gatectl.with_environment(GATECTL_ADDRESS=url)
