"""A real Chromium without a window, driven over the DevTools protocol by a pipe: no driver, no port.

Input is given as people give it: keys and clicks at places, controls found by their role and name in the
accessibility tree, which is what a screen reader has.
"""

import base64
import fcntl
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.gateway import ANSWER_SECONDS, STOP_SECONDS, WAIT_SECONDS, wait_for
from tests.support.readable import readable
from tests.support.squid import FETCHED

NAMES = ("chromium-headless-shell", "chromium", "google-chrome", "google-chrome-stable")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking",
    "--no-first-run", "--hide-scrollbars", "--remote-debugging-pipe",
)  # fmt: skip
CONTROLS = frozenset(
    {"button", "link", "textbox", "searchbox", "combobox", "checkbox", "DisclosureTriangle", "radio", "spinbutton"}
)


def program() -> str:
    """The installed browser if it runs, else the downloaded one."""
    installed = [path for path in map(shutil.which, NAMES) if path is not None]
    runs = (path for path in installed if subprocess.run([path, "--version"], capture_output=True).returncode == 0)
    chromium = next(runs, str(FETCHED / "bin" / NAMES[0]))
    assert Path(chromium).is_file(), "no Chromium to test with: run `make test`, which fetches one (scripts/servers.sh)"
    return chromium


class Browser:
    """One process with one page."""

    def __init__(self, folder: Path) -> None:
        theirs_in, ours_out = os.pipe()
        ours_in, theirs_out = os.pipe()
        high = [fcntl.fcntl(one, fcntl.F_DUPFD_CLOEXEC, 10) for one in (theirs_in, theirs_out)]
        command = f'exec "$@" 3<&{high[0]} 4>&{high[1]} {high[0]}<&- {high[1]}>&-'
        self._log = (folder / "browser.log").open("wb")
        self._process = subprocess.Popen(
            ["bash", "-c", command, "bash", program(), *FLAGS, f"--user-data-dir={folder / 'profile'}"],
            stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log, pass_fds=high,
        )  # fmt: skip
        for one in (theirs_in, theirs_out, *high):
            os.close(one)
        self._in, self._out = ours_in, ours_out
        self._buffer = b""
        self._number = 0
        self._session: str | None = None
        self.complaints: list[str] = []
        """Errors that scripts raised, and what the page's policy has refused, since they were last cleared."""
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network", "Accessibility"):
            self.ask(f"{domain}.enable")

    def close(self) -> None:
        """End the process and all that it started."""
        self._process.terminate()
        try:
            self._process.wait(STOP_SECONDS)
        finally:
            self._process.kill()
            for one in (self._in, self._out):
                os.close(one)
            self._log.close()

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        """One command and its answer."""
        self._number += 1
        sent = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            sent["sessionId"] = self._session
        os.write(self._out, json.dumps(sent).encode() + b"\0")
        deadline = time.monotonic() + ANSWER_SECONDS
        while True:
            told = self._next(deadline)
            if told.get("id") == self._number:
                assert "error" not in told, f"{method}: {told['error']}"
                result: dict[str, Any] = told["result"]
                return result
            self._notice(told)

    def _next(self, deadline: float) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            assert readable(self._in, max(0, deadline - time.monotonic())), "the browser does not answer"
            data = os.read(self._in, 1 << 20)
            assert data, "the browser has ended"
            self._buffer += data
        message, _, self._buffer = self._buffer.partition(b"\0")
        told: dict[str, Any] = json.loads(message)
        return told

    def _notice(self, told: dict[str, Any]) -> None:
        parameters = told.get("params", {})
        if told.get("method") == "Runtime.exceptionThrown":
            self.complaints.append(str(parameters["exceptionDetails"].get("exception", parameters)))
        elif told.get("method") == "Log.entryAdded" and parameters["entry"]["source"] in ("security", "javascript"):
            self.complaints.append(parameters["entry"]["text"])

    def open(self, url: str) -> None:
        """Go there, from a blank page, so that even the same address is loaded anew."""
        self.ask("Page.navigate", url="about:blank")
        wait_for(lambda: self.run("location.href") == "about:blank", "a blank page")
        self.ask("Page.navigate", url=url)
        is_blank = json.dumps(url == "about:blank")
        there = f"document.readyState === 'complete' && (location.href === 'about:blank') === {is_blank}"
        wait_for(lambda: self.run(there), f"the page {url}")

    def run(self, expression: str) -> Any:
        """The value of an expression in the page, awaited where it is a promise."""
        told = self.ask("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in told, told["exceptionDetails"]
        return told["result"].get("value")

    def text(self) -> str:
        """The visible text."""
        return str(self.run("document.body?.innerText ?? ''"))

    def sees(self, text: str, seconds: float = WAIT_SECONDS) -> None:
        """Wait until the text is visible."""
        try:
            wait_for(lambda: text in self.text(), text, seconds)
        except AssertionError as error:
            raise AssertionError(f"{error}; the page says:\n{self.text()}\n{self.complaints}") from None

    def nodes(self) -> list[tuple[str, str, int]]:
        """(role, name, node) of everything that a screen reader sees."""
        nodes = self.ask("Accessibility.getFullAXTree")["nodes"]
        return [
            (one["role"]["value"], one.get("name", {}).get("value", ""), one.get("backendDOMNodeId", 0))
            for one in nodes if not one["ignored"] and "role" in one
        ]  # fmt: skip

    def find(self, role: str, name: str) -> int:
        """Wait for a control with this role whose name begins so."""

        def found() -> int | None:
            return next((node for its, own, node in self.nodes() if its == role and own.startswith(name)), None)

        return int(wait_for(found, f"a {role} called {name!r}; there is:\n{self.text()}"))

    def click(self, role: str, name: str) -> None:
        """Press a control with the mouse, in its middle."""
        node = self.find(role, name)
        self.ask("DOM.scrollIntoViewIfNeeded", backendNodeId=node)
        quad = self.ask("DOM.getContentQuads", backendNodeId=node)["quads"][0]
        x, y = sum(quad[0::2]) / 4, sum(quad[1::2]) / 4
        for kind in ("mousePressed", "mouseReleased"):
            self.ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def write(self, name: str, text: str) -> None:
        """Type into the field of this name."""
        self.ask("DOM.focus", backendNodeId=self.find("textbox", name))
        self.run("document.activeElement.select()")
        self.ask("Input.insertText", text=text)

    def press(self, key: str) -> None:
        """One key."""
        code = {"Enter": 13, "Tab": 9, "Escape": 27}[key]
        more = {"text": "\r"} if key == "Enter" else {}
        for kind in ("keyDown", "keyUp"):
            self.ask("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, **more)

    def resize(self, width: int, height: int, scheme: str = "light") -> None:
        """Look at the page as a screen of this size shows it."""
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def picture(self, file: Path, *, is_whole: bool = True) -> None:
        """A PNG of the page."""
        told = self.ask("Page.captureScreenshot", format="png", captureBeyondViewport=is_whole)
        file.write_bytes(base64.b64decode(told["data"]))


@contextmanager
def browser(folder: Path) -> Iterator[Browser]:
    """Start a browser and end it with the block."""
    made = Browser(folder)
    try:
        yield made
    finally:
        made.close()
