"""Documents by HTTP and from files, within bounds, from real servers."""

import contextlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from importing.openapi import fetching
from importing.openapi.fetching import MAX_BYTES, fetch
from importing.refusal import ImportRefused


class Answers(BaseHTTPRequestHandler):
    """Answers by path."""

    def do_GET(self) -> None:
        """A document, a redirect to it, an endless one."""
        if self.path.startswith("/drips"):
            self._drip(b"X-More: y\r\n" if self.path == "/drips-head" else b"\r\n" + b" " * 100)
            return
        self.send_response({"/moved": 302, "/missing": 404}.get(self.path, 200))
        self.send_header("Location", "/ok")
        self.end_headers()
        with contextlib.suppress(OSError):
            self.wfile.write(b"{}" if self.path != "/endless" else b" " * (MAX_BYTES + 2))

    def _drip(self, data: bytes) -> None:
        with contextlib.suppress(OSError):
            self.wfile.write(b"HTTP/1.0 200 OK\r\n")
            for byte in data * 60:
                self.wfile.write(bytes((byte,)))
                if self.server.over.wait(0.1):  # type: ignore[attr-defined]
                    return

    def log_message(self, *_: object) -> None:
        """Keep quiet."""


@pytest.fixture
def server() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as serving:
        serving.over = threading.Event()  # type: ignore[attr-defined]
        thread = threading.Thread(target=serving.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield f"http://127.0.0.1:{serving.server_port}"
        serving.over.set()  # type: ignore[attr-defined]
        serving.shutdown()
        thread.join(60)


def test_a_document_is_fetched_from_this_machine_over_http(server: str) -> None:
    assert fetch(f"{server}/ok") == b"{}"


@pytest.mark.parametrize(
    ("path", "reason"),
    [("/moved", "answered 302; redirects are not followed"), ("/missing", "answered 404"), ("/endless", "more than")],
)
def test_an_answer_that_is_no_document_is_one_sentence(server: str, path: str, reason: str) -> None:
    with pytest.raises(ImportRefused, match=reason):
        fetch(server + path)


@pytest.mark.parametrize("path", ["/drips-head", "/drips-body"])
def test_a_server_that_sends_byte_by_byte_does_not_move_the_deadline(
    server: str, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetching, "FETCH_SECONDS", 0.5)
    with pytest.raises(ImportRefused, match=r"took more than 0\.5 s") as refused:
        fetch(server + path)
    assert refused.value.code == 69


def test_a_server_that_is_gone_is_one_sentence(server: str) -> None:
    with pytest.raises(ImportRefused, match="can't be fetched") as refused:
        fetch("https" + server.removeprefix("http"))
    assert refused.value.code == 69


@pytest.mark.parametrize(
    "place",
    ["http://api.example.com/a", "http://169.254.169.254/a", "https://u:p@api.example.com/a", "https://",
     "https://a b/", "http://127.0.0.1:x/", "https://[::1/"],
)  # fmt: skip
def test_an_address_that_may_not_be_asked_is_refused_before_anything_is_sent(place: str) -> None:
    with pytest.raises(ImportRefused) as refused:
        fetch(place)
    assert refused.value.code == 2


def test_a_file_that_is_missing_or_too_large_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(ImportRefused, match="can't be read: No such file"):
        fetch(str(tmp_path / "missing"))
    with pytest.raises(ImportRefused, match="is no regular file"):
        fetch(str(tmp_path))
    with (tmp_path / "large").open("wb") as large:
        large.truncate(MAX_BYTES + 1)
    with pytest.raises(ImportRefused, match="has more than 16777216 bytes"):
        fetch(str(tmp_path / "large"))


@pytest.mark.parametrize("host", ["a..b", "x" * 70], ids=["empty label", "long label"])
def test_a_name_that_no_host_can_have_is_refused(host: str) -> None:
    with pytest.raises(ImportRefused, match="can't be fetched"):
        fetch(f"https://{host}/api.json")
