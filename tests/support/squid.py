"""A real squid for tests, with the configuration that operators are shown (contrib/squid/gateway.conf).

A test changes its paths, its port and the allowed ports of upstreams; and loopback, the address of every test's
upstream, counts as public unless the test wants the file unchanged. Settings that can't be in such a file are
appended. Names lead to loopback, and no name server is ever asked.
"""

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from tests.support.gateway import START_SECONDS, STOP_SECONDS, wait_for
from tests.support.manifests import REPOSITORY
from tests.support.ports import free_port

EXAMPLE = REPOSITORY / "contrib" / "squid" / "gateway.conf"
FETCHED = REPOSITORY / ".venv" / "servers"
NOBODY = 65534
LISTEN = "0A"
"""The state of a listening socket in /proc/net/tcp."""
GUARD = 'read -r _ || { kill -9 "$0"; rm -rf "$1" "$2"-*; }'
"""A shell beside a squid: it ends at a line, and kills the squid if the process that started both ends without one. A
parent-death signal is lost when squid changes its user."""


class Line(NamedTuple):
    """One line of the access log."""

    status: int
    method: str
    target: str
    """`host:port` of a tunnel."""


def program(fetched: Path = FETCHED) -> tuple[str, Path | None]:
    """(the program, the folder of the files that came with it unless they lie where it expects them). An installed
    squid that runs is preferred to the downloaded one."""
    places = os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin"
    installed = shutil.which("squid", path=places)
    if installed is not None and subprocess.run([installed, "-v"], capture_output=True, check=False).returncode == 0:
        return installed, None
    binary = fetched / "bin" / "squid"
    assert binary.is_file(), "no squid to test with: run `make test`, which fetches one (scripts/servers.sh)"
    return str(binary), fetched / "root" / "usr"


def _companions(folder: Path) -> str:
    """Lines of configuration that say where the files lie that came with the program: in the folder of this squid,
    whose user can't read a checkout that is closed to others."""
    files = program()[1]
    if files is None:
        return ""
    shutil.copytree(files / "share/squid/errors/en", folder / "errors")
    shutil.copytree(files / "share/squid/icons", folder / "icons")
    shutil.copy(files / "share/squid/mime.conf", folder / "mime.conf")
    shutil.copy(files / "lib/squid/unlinkd", folder / "unlinkd")
    lines = {
        "mime_table": "mime.conf", "icon_directory": "icons", "error_directory": "errors", "unlinkd_program": "unlinkd"
    }  # fmt: skip
    return "".join(f"{name} {folder / place}\n" for name, place in lines.items())


@dataclass
class Squid:
    """One squid: its folder, and the process while it runs."""

    folder: Path
    port: int
    domains: Path
    """The list of allowed names, as it reads it."""
    process: "subprocess.Popen[bytes] | None" = field(default=None)
    guard: "subprocess.Popen[bytes] | None" = field(default=None)
    """Ends it when this process ends without a word."""
    name: str | None = None
    """Its name in the TLS certificate, or None without TLS."""

    @property
    def url(self) -> str:
        """For `egress_proxy_url`."""
        return f"http://127.0.0.1:{self.port}" if self.name is None else f"https://{self.name}:{self.port}"

    @property
    def pid(self) -> int:
        """The id of the running process."""
        assert self.process is not None
        return self.process.pid

    def start(self) -> None:
        """Start it and wait until it serves."""
        command = [program()[0], "-N", "-n", self._name, "-f", str(self.folder / "squid.conf")]
        before = self._openings()
        with (self.folder / "output").open("ab") as output:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        self.guard = subprocess.Popen(
            ["/bin/sh", "-c", GUARD, str(self.pid), str(self.folder), f"/dev/shm/{self._name}"], stdin=subprocess.PIPE,
            start_new_session=True,
        )  # fmt: skip
        wait_for(lambda: self._is_serving(before), "a squid that serves", START_SECONDS)

    def stop(self) -> None:
        """End it, however it is. Killed: it would wait for its clients first."""
        if self.guard is not None:
            self.guard.communicate(b"\n", STOP_SECONDS)
            self.guard = None
        if self.process is not None:
            self.process.kill()
            self.process.wait(STOP_SECONDS)
            self.process = None
        for left in Path("/dev/shm").glob(f"{self._name}-*"):
            left.unlink(missing_ok=True)

    @contextmanager
    def gone(self) -> Iterator[None]:
        """Without it; afterwards it is back, on the same port."""
        self.stop()
        try:
            yield
        finally:
            self.start()

    def reconfigure(self) -> None:
        """Let it read its files again, and wait until it serves by them."""
        before = self._openings()
        os.kill(self.pid, signal.SIGHUP)
        wait_for(lambda: self._is_serving(before), "a squid that serves again")

    def allow(self, *names: str) -> None:
        """Write the list of allowed names and let it be read."""
        write_domains(self.domains, names)
        self.reconfigure()

    def lines(self) -> list[Line]:
        """The access log. A tunnel is in it once it has ended."""
        path = self.folder / "access.log"
        rows = [line.split() for line in path.read_text().split("\n")[:-1]] if path.exists() else []
        return [Line(int(parts[3].rpartition("/")[2]), parts[5], parts[6]) for parts in rows]

    def says(self) -> str:
        """Its own log."""
        return "".join(
            path.read_text(errors="replace")
            for name in ("cache.log", "output")
            if (path := self.folder / name).exists()
        )

    @property
    def _name(self) -> str:
        """Tells it from others on this machine: squid's service name has letters and digits."""
        return f"gatewaytest{self.port}"

    def _openings(self) -> int:
        return self.says().count(f"Accepting HTTP{'' if self.name is None else 'S'} Socket connections")

    def _is_serving(self, before: int) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, f"squid ended; it said:\n{self.says()[-4000:]}"
        return self._openings() > before and self._is_listening()

    def _is_listening(self) -> bool:
        """It says that it accepts connections a moment before it listens."""
        rows = [line.split() for line in Path(f"/proc/{self.pid}/net/tcp").read_text().splitlines()]
        return any(row[1].endswith(f":{self.port:04X}") and row[3] == LISTEN for row in rows)


def write_domains(path: Path, names: Iterable[str]) -> None:
    """A list as squid reads it."""
    path.write_text("".join(f"{name}\n" for name in ("# for a test", *names)))


def _configuration(squid: Squid, ports: Iterable[int], hosts: Path, is_strict: bool) -> str:
    text = EXAMPLE.read_text()
    listed = " ".join(str(port) for port in (443, *ports))
    changes = {
        "http_port 127.0.0.1:3128": f"http_port 127.0.0.1:{squid.port}",
        "/var/lib/gateway-egress/domains": str(squid.domains),
        "/var/log/squid/access.log": str(squid.folder / "access.log"),
        "\nacl allowed_ports port 443": f"\nacl allowed_ports port {listed}",
        " 127.0.0.0/8 ": " 127.0.0.0/8 " if is_strict else " ",
    }
    for old, new in changes.items():
        assert text.count(old) == 1, f"{EXAMPLE} does not hold {old!r} once"
        text = text.replace(old, new)
    return (
        f"{text}\n{_companions(squid.folder)}cache_log {squid.folder / 'cache.log'}\nhosts_file {hosts}\n"
        "cache_effective_user nobody\ndns_nameservers 127.0.0.1\npid_filename none\npinger_enable off\n"
        "coredump_dir none\nmax_filedescriptors 1024\n"
    )


def _who_is_known(folder: Path, credentials: str) -> str:
    """Lines that let only this user through; squid asks a helper in a protocol of its own."""
    helper, known = folder / "known.sh", folder / "known"
    known.write_text(credentials.replace(":", " ", 1) + "\n")
    helper.write_text(
        f"#!/bin/sh\nread -r wanted < {known}\nwhile read -r said; do\n"
        '  [ "$said" = "$wanted" ] && echo OK || echo ERR\ndone\n'
    )
    helper.chmod(0o755)
    known.chmod(0o644)
    return f"auth_param basic program {helper}\nacl known proxy_auth REQUIRED\nhttp_access deny !known\n"


@contextmanager
def squid(
    names: Iterable[str], ports: Iterable[int] = (), *, allowed: Iterable[str] | None = None,
    domains: Path | None = None, is_strict: bool = False, credentials: str | None = None,
    certificate: tuple[str, Path] | None = None,
) -> Iterator[Squid]:  # fmt: skip
    """Run one until the block ends.

    `names` lead to loopback. `allowed` are the entries of its list (all names unless given), or `domains` is the file
    that another program writes. `credentials` are `user:password`: requests without them are refused. `certificate`, a
    name and a file with it and its key: it speaks TLS. `ports` of upstreams are allowed besides 443. `is_strict`:
    loopback is refused, as it is for operators.

    Its folder is no pytest folder: a squid that root starts changes to an unprivileged user, who can't read those.
    """
    folder = Path(tempfile.mkdtemp(prefix="gateway-squid-"))
    try:
        folder.chmod(0o755)
        if os.geteuid() == 0:
            os.chown(folder, NOBODY, NOBODY)
        names = list(names)
        made = Squid(folder, free_port(), domains or folder / "domains")
        if domains is None:
            write_domains(made.domains, names if allowed is None else allowed)
        hosts = folder / "hosts"
        hosts.write_text("".join(f"127.0.0.1 {name}\n" for name in names))
        knows = "" if credentials is None else _who_is_known(folder, credentials)
        text = knows + _configuration(made, ports, hosts, is_strict)
        if certificate is not None:
            made.name, own = certificate[0], folder / "certificate.pem"
            shutil.copy(certificate[1], own)
            own.chmod(0o644)
            plain = f"http_port 127.0.0.1:{made.port}"
            text = text.replace(plain, f"https_port 127.0.0.1:{made.port} tls-cert={own} tls-key={own}")
        (folder / "squid.conf").write_text(text)
        hosts.chmod(0o644)
        try:
            made.start()
            yield made
        finally:
            made.stop()
    finally:
        shutil.rmtree(folder)
