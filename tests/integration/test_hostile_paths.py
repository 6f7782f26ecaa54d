"""Paths that want out of where an action may write, and paths that want a request to go somewhere else."""

import os
from pathlib import Path
from typing import Any

import pytest

from tests.support.gateway import Bearer, Gateway
from tests.support.hostile_upstream import HostileUpstream
from tests.support.raw_http import raw, request

WRITE = "/v1/actions/file_write/execute"
CHANGING = (
    "state/files/", "state/store.", "state/ledger.", "state/checkpoints", "state/manifest-history/", "gateway.log",
)  # fmt: skip
"""Starts of paths whose files the gateway writes while calls run; manifests are copied after the start."""


@pytest.fixture(scope="module")
def gate(beset: Gateway) -> Gateway:
    """The gateway whose upstream is hostile."""
    return beset


@pytest.fixture(scope="module")
def caller(gate: Gateway) -> Bearer:
    """One lease for all rows: more than fifty leases a second are refused."""
    return gate.agent()


def outside(gate: Gateway) -> dict[str, int]:
    """Every file around the folder that may be written, with its size; some files change by themselves."""
    root = gate.state.parent
    sizes = {}
    for path in root.rglob("*"):
        name = str(path.relative_to(root))
        if not name.startswith(CHANGING):
            sizes[name] = path.lstat().st_size if path.is_file() and not path.is_symlink() else -1
    return sizes


# ------------------------------------------------------------------------------------------------ files

REFUSED_PATHS = (
    "../escape", "../../escape", "a/../../escape", "a/..", "..", ".", "./a", "a/./b", "a/", "/", "/etc/escape",
    "//escape", "a//b", "", " /../escape/..", "a/../b",
    "..\\escape", "\\\\host\\share", "C:\\escape", "a\\..\\..\\escape",
    "a\u0000b", "escape\u0000.txt", "a\nb", "a\rb", "a\u001b[2J", "a\u007f", "a\u0085b", "a\u2028b",
    "e\u0301scape",  # not in the one form of this text (NFC)
    ".hidden", "a/.ssh/authorized_keys", ".gateway-tmp-1", "...", "..a", "..%2fescape", "..;/escape", "a/..b",
    "*", "a*b", "a?b", "[a]", "**",
    "x" * 256, "a/" + "x" * 300, "/".join(["d" * 200] * 30),
    "~/../escape/..", "proc/self/../../escape",
    "reports/\u202egpj.exe", "e\u200b", "a\ufe0f", "reports/ ", " a", "a /b", "a\u00a0",  # read as another name
)  # fmt: skip

WRITTEN_PATHS = (
    "%2e%2e/escape", "~root", "$HOME/x", "CON", "a b", "-rf", "state/ledger.sqlite3",
    "\uff0e\uff0e/escape", "\u2025/escape", "file:etc", "a|b;c&d`e`", "a..b/c..",
)  # fmt: skip
"""Strange, and nevertheless each the plain name of one file below the root."""


@pytest.mark.parametrize("path", REFUSED_PATHS, ids=lambda path: ascii(path)[:40])
def test_a_path_that_is_no_plain_path_below_the_root_is_refused(gate: Gateway, caller: Bearer, path: str) -> None:
    before = outside(gate)
    answer = caller.execute("file_write", {"path": path, "content": "escaped"})
    expected = {422: "schema_violation", 403: "policy_denied"}
    assert answer.json()["error"] == expected[answer.status_code]
    assert len(path) < 5 or path not in answer.text
    assert outside(gate) == before
    assert "escaped" not in [file.read_text() for file in (gate.state / "files").rglob("*") if file.is_file()]


@pytest.mark.parametrize("path", WRITTEN_PATHS, ids=ascii)
def test_a_path_is_taken_literally_and_stays_below_the_root(gate: Gateway, caller: Bearer, path: str) -> None:
    before = outside(gate)
    answer = caller.execute("file_write", {"path": path, "content": f"literally {path}"})
    assert answer.status_code == 200, answer.text
    assert answer.json()["verification_outcome"] == "verified"
    assert (gate.state / "files" / path).read_text() == f"literally {path}"
    assert outside(gate) == before


def failed(gate: Gateway, agent: Bearer, body: dict[str, Any]) -> str:
    """The reason in the receipt of a write that must fail."""
    answer = agent.execute("file_write", body)
    assert (answer.status_code, answer.json()) == (502, {"error": "action_execution_failed"}), answer.text
    event = gate.events(session_id=agent.session_id, event_type="ActionCall")[0]
    receipt = agent.get(f"/v1/receipts/{event['receipt_id']}").json()
    assert receipt["failure_class"] == "provider_error"
    return str(receipt["normalized_result"]["reason"])


def test_no_link_leads_out(gate: Gateway, agent: Bearer, tmp_path: Path) -> None:
    root = gate.state / "files"
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "file").write_text("untouched")
    links = {
        "link-to-folder": victim, "link-to-parent": Path(".."), "link-to-root": Path("/"),
        "link-inside": root, "link-to-proc": Path("/proc/self/cwd"), "link-to-nothing": tmp_path / "new",
    }  # fmt: skip
    for name, target in links.items():
        (root / name).symlink_to(target)
    (root / "link-to-file").symlink_to(victim / "file")
    (root / "deep" / "er").mkdir(parents=True)
    (root / "deep" / "er" / "up").symlink_to("../../../..")
    for name in (*links, "deep/er/up"):
        reason = failed(gate, agent, {"path": f"{name}/file", "content": "escaped"})
        assert "symbolic link" in reason or "leaves" in reason
        assert str(tmp_path) not in reason
    for name in ("link-to-file", "link-to-nothing"):
        assert "symbolic link" in failed(gate, agent, {"path": name, "content": "escaped"})
    assert (victim / "file").read_text() == "untouched"
    assert sorted(os.listdir(victim)) == ["file"]
    assert not (tmp_path / "new").exists()


def test_what_is_no_regular_file_is_not_written_to(gate: Gateway, agent: Bearer) -> None:
    root = gate.state / "files"
    os.mkfifo(root / "fifo")
    (root / "folder").mkdir()
    (root / "plain").write_text("x")
    assert "regular file" in failed(gate, agent, {"path": "fifo", "content": "x"})
    for path in ("folder", "plain/below"):
        assert "conflict" in failed(gate, agent, {"path": path, "content": "x"})
    assert (root / "plain").read_text() == "x"


def test_a_second_name_of_a_file_outside_does_not_carry_a_write_out(
    gate: Gateway, agent: Bearer, tmp_path: Path
) -> None:
    (tmp_path / "victim").write_text("untouched")
    (gate.state / "files" / "second-name").hardlink_to(tmp_path / "victim")
    answer = agent.execute("file_write", {"path": "second-name", "content": "mine"})
    assert answer.status_code == 200, answer.text
    assert (tmp_path / "victim").read_text() == "untouched"
    assert (gate.state / "files" / "second-name").read_text() == "mine"


def test_a_file_is_private_whatever_it_is_called(gate: Gateway, agent: Bearer) -> None:
    assert agent.execute("file_write", {"path": "new/folder/file", "content": "x"}).status_code == 200
    path = gate.state / "files" / "new"
    assert [one.stat().st_mode & 0o777 for one in (path, path / "folder", path / "folder" / "file")] == [
        0o700, 0o700, 0o600,
    ]  # fmt: skip


@pytest.mark.parametrize("path", ["\ud800", "a\udfff/b"], ids=ascii)
def test_half_a_character_is_no_path(gate: Gateway, agent: Bearer, path: str) -> None:
    escaped = "".join(f"\\u{ord(letter):04x}" for letter in path)
    body = f'{{"path":"{escaped}","content":"x"}}'.encode()
    with raw(gate.ready["base_url"]) as line:
        reply = line.ask(request("POST", WRITE, agent.headers("POST", WRITE), body), "POST")
    assert reply is not None
    assert (reply.status, reply.json["error"]) == (422, "schema_violation")


# ------------------------------------------------------------------------------------------------ URLs

REFUSED_URL_PATHS = (
    # another host
    "//evil.test/x", "///evil.test", "/\\evil.test", "\\\\evil.test\\x", "x//evil.test",
    # out of the path
    "..", "../x", "/../x", "a/../../x", "a/..", ".", "./x", "%2e%2e/x", ".%2e/x", "a/%2E%2E/%2e%2e/x", "..%2fx",
    "..%5cx", "%252e%252e/x", "a/..;/b", "..;x/y", "%2e%2e%2f%2e%2e%2fx", "%c0%ae%c0%ae/../x",
    # another request
    "x HTTP/1.1\r\nHost: evil.test\r\n\r\n", "x\r\nX: y", "x%0d%0aX:%20y", "x%00", "x\ny", "x\ty", "x y", "x%0a",
    "x%7f", "x%1b",
    # fragments and letters that a URL does not have
    "x#fragment", "x?y#z", "x<y>", 'x"y', "x{y}", "x|y", "x^y", "x`y", "\u00e9", "x\u2028y", "x\u202ey",
    # sizes
    "", "x" * 2049,
)  # fmt: skip

SENT_URL_PATHS = {
    "@evil.test/x": "/@evil.test/x",
    "user:secret@evil.test": "/user:secret@evil.test",
    ":80@evil.test": "/:80@evil.test",
    "http:evil.test": "/http:evil.test",
    ".evil.test": "/.evil.test",
    "/x": "/x",
    "x?y=z&y=%26": "/x?y=z&y=%26",
    "x?y=http://evil.test/": "/x?y=http://evil.test/",
    "x?../..": "/x?../..",
    "x%zz": "/x%25zz",
    "x%": "/x%25",
    "x%2fy": "/x%2fy",
    "...": "/...",
    "..a": "/..a",
    "x;y=z": "/x;y=z",
    "a..b": "/a..b",
    "%20": "/%20",
    "?": "/?",
    "$%(x)": "/$%25(x)",
}


@pytest.mark.parametrize("path", REFUSED_URL_PATHS, ids=lambda path: ascii(path)[:40])
def test_a_url_path_that_could_mean_something_else_is_422_and_nothing_is_sent(
    caller: Bearer, hostile: HostileUpstream, path: str
) -> None:
    before = len(hostile.seen)
    answer = caller.execute("http_fetch", {"path": path})
    assert (answer.status_code, answer.json().get("error")) == (422, "schema_violation"), (answer.text, hostile.targets)
    assert len(path) < 5 or path not in answer.text
    assert len(hostile.seen) == before
    assert not hostile.trapped


@pytest.mark.parametrize("path", SENT_URL_PATHS)
def test_whatever_stands_in_the_path_goes_to_the_one_host_as_a_path(
    caller: Bearer, hostile: HostileUpstream, path: str
) -> None:
    answer = caller.execute("http_fetch", {"path": path})
    assert answer.status_code == 200, answer.text
    line, host = hostile.seen[-1]
    assert line == f"GET {SENT_URL_PATHS[path]} HTTP/1.1"
    assert host == "upstream.gateway.test"


def test_a_body_is_json_whatever_its_values_are(agent: Bearer, hostile: HostileUpstream) -> None:
    message = '"}\r\n\r\nGET /evil HTTP/1.1\r\nHost: evil.test\r\n\r\n{"x":"\u0000\u2028'
    before = len(hostile.seen)
    answer = agent.execute("http_post", {"path": "fine", "message": message})
    assert answer.status_code == 200, answer.text
    assert [line for line, _ in hostile.seen[before:]] == ["POST /fine HTTP/1.1"]
