"""The module checker over its real channel: a template's verdicts, and nothing kept."""

import hashlib
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ipc.channel.blocking import BlockingChannel
from ipc.limits import MAX_CONTROL_FRAME
from ipc.messages.modules import LoadModules, ModuleFile, ModulesLoaded, ModuleVerdict
from ipc.protocols.checking import FROM_MODULE_CHECKER
from tests.support.manifests import PROVIDERS, REPOSITORY
from workers.cache import Cache, code_digest

FIXTURES = REPOSITORY / "tests" / "providers" / "fixtures"


class Checker:
    """A running module checker."""

    def __init__(self, *arguments: str) -> None:
        self.sock, theirs = socket.socketpair()
        self.sock.settimeout(60)
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "workers.check", "--channel-fd", str(theirs.fileno()),
                 "--parent", str(os.getpid()), *arguments],
                cwd=REPOSITORY, pass_fds=(theirs.fileno(),), stdin=subprocess.DEVNULL,
            )  # fmt: skip
        self.channel: BlockingChannel[ModulesLoaded] = BlockingChannel(
            self.sock, ModulesLoaded, table=FROM_MODULE_CHECKER, cap_in=MAX_CONTROL_FRAME,
            cap_out=MAX_CONTROL_FRAME,
        )  # fmt: skip

    def verdicts(self, *files: ModuleFile) -> tuple[ModuleVerdict, ...]:
        self.channel.send(LoadModules("one", files))
        answer = self.channel.receive()
        assert answer.request_id == "one"
        return answer.verdicts

    def close(self) -> None:
        self.sock.close()
        assert self.process.wait(120) == 11  # orphaned: the channel closed


@pytest.fixture(scope="module")
def checker() -> Iterator[Checker]:
    started = Checker()
    yield started
    started.close()


def module(folder: Path, data: bytes, *imports: str, digest: str | None = None) -> ModuleFile:
    hex_digest = digest or hashlib.sha256(data).hexdigest()
    path = folder / f"{hex_digest}.wasm"
    path.write_bytes(data)
    return ModuleFile(f"sha256:{hex_digest}", str(path), imports)


def test_each_module_has_the_verdict_that_a_template_would_give(tmp_path: Path, checker: Checker) -> None:
    echo, http = (PROVIDERS / "echo.wasm").read_bytes(), (FIXTURES / "http_probe.wasm").read_bytes()
    files = [
        ModuleFile("builtin:echo", None, ()),
        ModuleFile("builtin:nothing", None, ()),
        module(tmp_path, echo + b"\0\x02\x01a"),
        module(tmp_path, http),
        module(tmp_path, http, "http"),
        module(tmp_path, echo, digest="c" * 64),
        module(tmp_path, b"\0asm\x01\0\0\0"),
        module(tmp_path, b"\0asm\x0d\0\x01\0"),
        ModuleFile("sha256:" + "d" * 64, str(tmp_path / "none.wasm"), ()),
        ModuleFile("sha256:" + "e" * 64, str(tmp_path), ()),
    ]
    before = sorted(tmp_path.iterdir())
    verdicts = checker.verdicts(*files)
    assert [one.reference for one in verdicts] == [file.reference for file in files]
    assert [(one.verdict, one.detail.split(":")[0][:44]) for one in verdicts] == [
        ("ok", ""),
        ("missing", "there is no built-in provider nothing"),
        ("ok", ""),
        ("refused", "imports gateway"),
        ("ok", ""),
        ("mismatch", "the module is sha256"),
        ("refused", "not a component"),
        ("refused", "exports no function 'run'"),
        ("missing", "the module can't be read"),
        ("missing", "the module can't be read"),
    ]
    assert sorted(tmp_path.iterdir()) == before


def test_a_module_that_many_manifests_name_is_compiled_once(tmp_path: Path, checker: Checker) -> None:
    file = module(tmp_path, (PROVIDERS / "text_digest.wasm").read_bytes() + b"\0\x02\x01z")
    assert {one.verdict for one in checker.verdicts(*[file] * 200)} == {"ok"}


def test_the_folder_of_compiled_modules_is_only_looked_into(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    data = b"\0asm\x0d\0\x01\0"
    file = module(tmp_path, data)
    checker = Checker("--cache", str(cache))
    assert checker.verdicts(file)[0].verdict == "refused"
    assert not cache.exists()
    checker.close()
    # Code that a gateway has compiled and mapped is good, but only if its digest is noted in
    # a folder that it alone can write.
    known = Cache(str(cache))
    kept = Path(known.path(file.reference))
    kept.write_bytes(b"compiled")
    kept.chmod(0o600)
    (cache / ".tmp-1").write_bytes(b"")
    checker = Checker("--cache", str(cache))
    assert checker.verdicts(file)[0].verdict == "refused"
    checker.close()
    known.note(file.reference, code_digest(b"compiled"))
    checker = Checker("--cache", str(cache))
    assert checker.verdicts(file)[0].verdict == "ok"
    checker.close()
    cache.chmod(0o755)
    checker = Checker("--cache", str(cache))
    assert checker.verdicts(file)[0].verdict == "refused"
    checker.close()
    assert sorted(path.name for path in cache.iterdir()) == [".tmp-1", kept.name]
