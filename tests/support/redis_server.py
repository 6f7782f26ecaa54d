"""A real redis-server, in a folder of the test: on a port and a Unix socket, with what a production one has set."""

import shutil
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import redis

from bench.servers import redis_command
from ipc.settings import StoreSettings
from tests.support.gateway import wait_for
from tests.support.ports import free_port


class RedisServer:
    """One server. Stopped and started again it has what it kept; `wiped`, nothing."""

    def __init__(self, folder: Path, *more: str, within: Sequence[str] = (), password: str | None = None) -> None:
        """`within`: the start of the command, for a server in a network of its own; `password`: of the default user."""
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.port = free_port()
        self.socket = folder / "redis.sock"
        self._within = tuple(within)
        self._password = password
        self._more = more if password is None else (*more, "--requirepass", password)
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    @property
    def url(self) -> str:
        """By TCP."""
        return f"redis://127.0.0.1:{self.port}"

    @property
    def settings(self) -> StoreSettings:
        """By its Unix socket."""
        return StoreSettings(redis_url=f"unix://{self.socket}")

    def start(self) -> None:
        """Until it answers."""
        self._process = subprocess.Popen([*self._within, *redis_command(self.folder, self.port), *self._more])
        wait_for(self._answers, "redis-server")

    def _answers(self) -> bool:
        try:
            return bool(self.ask("PING"))
        except redis.BusyLoadingError:
            return False
        except redis.ResponseError:
            return True  # it wants to be told who asks
        except redis.RedisError:
            return False

    def ask(self, *command: Any) -> Any:
        """One command of the test's own."""
        with self._client() as client:
            return client.execute_command(*command)

    def _client(self) -> "redis.Redis":
        return redis.Redis(unix_socket_path=str(self.socket), password=self._password, decode_responses=True)

    def names(self, prefix: str) -> list[str]:
        """The prefix of all keys of one gateway."""
        return sorted(self.ask("KEYS", f"{{{prefix}}}:*"))

    def kill(self) -> None:
        """SIGKILL."""
        assert self._process is not None, "it runs"
        self._process.kill()
        self._process.wait(120)

    def freeze(self) -> None:
        """It takes connections, and says nothing."""
        self._signal("STOP")

    def thaw(self) -> None:
        """Let it continue with its received requests."""
        self._signal("CONT")

    def _signal(self, name: str) -> None:
        assert self._process is not None, "it runs"
        self._process.send_signal(getattr(signal, f"SIG{name}"))

    def wipe(self) -> None:
        """Delete its data; it must not run."""
        for path in self.folder.iterdir():
            if path.is_dir():
                shutil.rmtree(path)

    def close(self) -> None:
        """The end."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait(120)

    def info(self, section: str) -> str:
        """A section of INFO, as Redis writes it."""
        with self._client() as client:
            return "\n".join(f"{name}:{value}" for name, value in client.info(section).items())
