"""A program on a terminal of its own that a terminal emulator draws: what a person would see, and keys to press."""

import fcntl
import os
import pty
import signal
import subprocess
import termios
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import pyte

from tests.support.readable import readable

SECONDS = 120
ENTER, ESCAPE, END = "\r", "\x1b", "\x1b[F"


class Screen:
    """The screen as it is now. `raw`: everything that was ever sent to it."""

    def __init__(self, process: "subprocess.Popen[bytes]", terminal: int, columns: int, lines: int) -> None:
        self._process, self._terminal = process, terminal
        self._lock = threading.Lock()
        self._drawn = pyte.Screen(columns, lines)
        self._stream = pyte.ByteStream(self._drawn)
        self.raw = b""
        self._is_over = False
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def lines(self) -> list[str]:
        """Its rows, blanks at their ends cut."""
        with self._lock:
            return [line.rstrip() for line in self._drawn.display]

    @property
    def text(self) -> str:
        """The whole, a row a line."""
        return "\n".join(self.lines)

    @property
    def pid(self) -> int:
        """The process of the program."""
        return self._process.pid

    def press(self, *keys: str) -> None:
        """Type these."""
        for key in keys:
            os.write(self._terminal, key.encode())

    def wait_for(self, *parts: str, gone: Sequence[str] = ()) -> str:
        """Until all of this stands there, and nothing of `gone`; gives the text."""
        return self.wait_until(
            lambda text: all(one in text for one in parts) and not any(one in text for one in gone),
            f"{parts} without {gone}",
        )

    def wait_until(self, is_there: Callable[[str], bool], what: str) -> str:
        """The text once it is as it should be."""
        end = time.monotonic() + SECONDS
        while True:
            is_over = self._is_over  # before the look: what it drew last is on the screen by then
            if is_there(text := self.text):
                return text
            assert time.monotonic() < end, f"never stood there: {what}\n{text}"
            assert not is_over, f"it ended without {what}\n{text}"
            time.sleep(0.02)

    def resize(self, columns: int, lines: int) -> None:
        """Change the size and signal it to the program."""
        with self._lock:
            self._drawn.resize(lines, columns)
        termios.tcsetwinsize(self._terminal, (lines, columns))

    def end(self) -> int:
        """The exit code, once it has ended by itself."""
        return self._process.wait(SECONDS)

    def _read(self) -> None:
        while True:
            if not readable(self._terminal, 1.0):
                if self._is_over:
                    return
                continue
            try:
                data = os.read(self._terminal, 65536)
            except OSError:  # the last of them has closed it, or we have
                self._is_over = True
                return
            with self._lock:
                self.raw += data
                self._stream.feed(data)


def _with_a_terminal() -> None:
    """Start a session that gets SIGHUP from its terminal even if this test run ignores it."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@contextmanager
def on_screen(
    program: Sequence[str], environ: Mapping[str, str], columns: int = 80, lines: int = 24
) -> Iterator[Screen]:  # fmt: skip
    """The program, running; killed at the end of the block."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (lines, columns))
    try:
        process = subprocess.Popen(
            list(program), stdin=theirs, stdout=theirs, stderr=theirs, env=dict(environ), start_new_session=True,
            preexec_fn=_with_a_terminal,
        )  # fmt: skip
    finally:
        os.close(theirs)
    screen = Screen(process, ours, columns, lines)
    try:
        yield screen
    finally:
        process.kill()
        process.wait(60)
        screen._is_over = True
        screen._reader.join(10)
        os.close(ours)
