"""The kernel's view of the processes of a running gateway, and gateways started in unusual ways."""

import contextlib
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import psutil

from tests.support.gateway import ANSWER_SECONDS, START_SECONDS, Gateway, gone_afterwards, ready_line

GATEWAY = str(Path(sys.executable).with_name("gateway"))
CANARY = "canary-3f1c0d7a9b"
"""A secret in the environment of a gateway, which no child of it may have."""
NOBODYS_GROUP = 65534
MOST_SEARCHED = 1 << 30


FRONT_MEMORY = "/memfd:gateway-fronts (deleted)"
"""The name of the fronts' shared memory in /proc."""


def title(pid: int) -> str:
    """The command line that `ps` shows."""
    return Path(f"/proc/{pid}/cmdline").read_bytes().rstrip(b"\0 ").decode()


def descriptors(pid: int) -> dict[int, str]:
    """Number -> what it is, of all that stay open. Only root may look into a process that is not dumpable."""
    folder, kinds = f"/proc/{pid}/fd", {}
    for name in os.listdir(folder):
        with contextlib.suppress(FileNotFoundError):  # it was closed meanwhile
            kinds[int(name)] = os.readlink(f"{folder}/{name}")
    return kinds


def limits(pid: int) -> dict[str, tuple[str, str]]:
    """Name of a resource limit -> (soft, hard)."""
    lines = Path(f"/proc/{pid}/limits").read_text().splitlines()[1:]
    matches = (re.match(r"(Max .+?) {2,}(\S+) +(\S+)", line) for line in lines)
    return {match[1]: (match[2], match[3]) for match in matches if match}


def status(pid: int, name: str) -> str:
    """One line of /proc/PID/status."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(line.partition(":")[2].strip() for line in lines if line.startswith(f"{name}:"))


def is_dumpable(pid: int) -> bool:
    """Whether the process' own user may look into it, attach to it and get its core.

    The kernel tells by the owner of what is below /proc/PID: the process' own user and group, or root. A process of
    root tells by its group, so it must run under another one than root's.
    """
    own = (int(status(pid, "Uid").split()[1]), int(status(pid, "Gid").split()[1]))
    assert own != (0, 0), "this process tells nothing"
    owner = os.stat(f"/proc/{pid}/fd")
    return (owner.st_uid, owner.st_gid) == own


def holds_text(pid: int, text: bytes) -> bool:
    """Whether the bytes are anywhere in the memory that a process can write to. For root."""
    return any(text in piece for piece in memory_of(pid, "rw"))


def memory_of(pid: int, rights: str) -> Iterator[bytes]:
    """The content of every mapping whose rights begin like this. For root.

    Reservations of hundreds of gigabytes (by the policy evaluator's allocator) are left out.
    """
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", 0) as memory:
        for line in maps:
            span, its_rights, *_ = line.split()
            if not its_rights.startswith(rights) or line.rstrip().endswith(("[vvar]", "[vsyscall]")):
                continue
            start, end = (int(part, 16) for part in span.split("-"))
            if end - start > MOST_SEARCHED:
                continue
            memory.seek(start)
            with contextlib.suppress(OSError):
                yield memory.read(end - start)


def mapped_files(pid: int) -> set[str]:
    """Paths of the files that a process has mapped. For root."""
    lines = Path(f"/proc/{pid}/maps").read_text().splitlines()
    return {line.split(maxsplit=5)[5] for line in lines if len(line.split(maxsplit=5)) == 6}


def is_running(pid: int) -> bool:
    """Whether a process exists and has not ended."""
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def family(pid: int) -> dict[int, str]:
    """pid -> title of every process below one, however deep. Spares are left out: they come once all is calm."""
    return {pid: name for pid, name in titles_below(pid).items() if not is_spare(name)}


def titles_below(pid: int) -> dict[int, str]:
    """pid -> title of every process below one that has a title of its own.

    A freshly forked child still shows its parent's title: it counts only once it has executed a program or set its
    own title.
    """
    parents, names = {}, {pid: title(pid)}
    for child in psutil.Process(pid).children(recursive=True):
        with contextlib.suppress(OSError, psutil.NoSuchProcess):
            parents[child.pid], names[child.pid] = child.ppid(), title(child.pid)
    return {pid: names[pid] for pid, parent in parents.items() if names.get(pid) and names[pid] != names.get(parent)}


def is_spare(name: str) -> bool:
    """Whether this is the title of a process that waits for its first message, or has none yet."""
    return name.startswith("gateway: spare") or any(kind in name for kind in ("frontend.main", "workers.rego.main"))


def pids(gate: Gateway) -> dict[str, int]:
    """Title without `gateway: ` -> pid, the supervisor included."""
    titles = family(gate.process.pid) | {gate.process.pid: title(gate.process.pid)}
    return {name.removeprefix("gateway: "): pid for pid, name in titles.items()}


@contextmanager
def started(
    folder: Path, config: str = "", *, arguments: tuple[str, ...] = (), pass_fds: tuple[int, ...] = (),
    group: int | None = None, program: str = GATEWAY, **environment: str,
) -> Iterator[Gateway]:  # fmt: skip
    """`gateway dev` as in tests/support/gateway.py, in a session of its own, and in a group when asked for."""
    command = [program, "dev", "--listen", "127.0.0.1:0", "--state-dir", str(folder / "state"), *arguments]
    if config:
        (folder / "gateway.toml").write_text(config)
        command += ["--config", str(folder / "gateway.toml")]
    log = folder / "gateway.log"
    with log.open("ab") as errors:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, text=True,
            env=os.environ | environment, start_new_session=True, pass_fds=pass_fds, group=group,
        )  # fmt: skip
    with gone_afterwards(process):
        ready = ready_line(process, log)
        with httpx.Client(base_url=ready["base_url"], timeout=ANSWER_SECONDS, verify=False) as http:
            running = Gateway(process, ready, log, http)
            yield running
            for client in running.clients:
                client.close()
            running.stop()


def launched(folder: Path) -> "subprocess.Popen[bytes]":
    """A `gateway dev`, started without waiting for it; the caller ends it."""
    command = [GATEWAY, "dev", "--listen", "127.0.0.1:0", "--state-dir", str(folder / "state")]
    with (folder / "log").open("wb") as log:
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)


def attempt(*arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    """Run `gateway` with these arguments to its end."""
    return subprocess.run(
        [GATEWAY, *arguments], capture_output=True, text=True, timeout=START_SECONDS, check=False,
        stdin=subprocess.DEVNULL,
        env=os.environ | environment,
    )  # fmt: skip


def sentences(done: "subprocess.CompletedProcess[str]") -> list[str]:
    """The text for people on standard error: the lines that are no log lines."""
    return [line for line in done.stderr.splitlines() if not line.startswith("{")]
