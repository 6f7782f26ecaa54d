"""One pod of a StatefulSet with gateway and edge: started and ended as Kubernetes does it, its volume kept."""

import shutil
import signal
import ssl
import subprocess
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import httpx

from ipc.process.exits import Exit
from tests.support.gateway import wait_for
from tests.support.kubernetes import Resource
from tests.support.pod_service import PodService
from tests.support.pods import Contents, Pod

PROBE_SECONDS = 120


class Replica:
    """Each start is a new pod with the old volume `state`."""

    def __init__(self, spec: Resource, contents: Contents, folder: Path, service: PodService, roots: Path) -> None:
        self._spec = spec
        self._contents = contents
        self._folder = folder
        self._service = service
        self._trusted = ssl.create_default_context(cafile=str(roots))
        self._stack = ExitStack()
        self._processes: dict[str, subprocess.Popen[str]] = {}
        self._starts = 0
        self.pod = self._new_pod()

    @property
    def port(self) -> int:
        port: int = self.pod.container("edge")["ports"][0]["containerPort"]
        return port

    def _new_pod(self) -> Pod:
        self._starts += 1
        folder = self._folder / f"pod-{self._starts}"
        if self._starts > 1:
            (folder / "volumes").mkdir(parents=True)
            shutil.move(self.pod.volume("state"), folder / "volumes")
        return Pod(self._spec, self._contents, folder)

    def start(self) -> None:
        """The doctor, the gateway until its startup probe is content, the edge until its readiness probe is. New
        connections come then."""
        doctor = self.pod.run("doctor")
        assert doctor.returncode == 0, doctor.stdout + doctor.stderr
        self._start("gateway", self._has_started)
        self._start("edge", self._is_ready)
        self._service.ready.add(self.port)

    def _start(self, name: str, is_content: Callable[[], bool]) -> None:
        process = self._processes[name] = self._stack.enter_context(self.pod.running(name))

        def served() -> bool:
            assert process.poll() is None, self.pod.log(name).read_text()[-4000:]
            return is_content()

        wait_for(served, f"the probe of {name}", PROBE_SECONDS)

    def _has_started(self) -> bool:
        return (
            self.pod.run("gateway", *self.pod.container("gateway")["startupProbe"]["exec"]["command"]).returncode == 0
        )

    def _is_ready(self) -> bool:
        asked = self.pod.container("edge")["readinessProbe"]["httpGet"]
        try:
            return httpx.get(
                f"https://127.0.0.1:{self.port}{asked['path']}", verify=self._trusted, timeout=60
            ).is_success
        except httpx.HTTPError:
            return False

    def leave(self) -> None:
        """New connections find other pods from now on: the edge pauses for that before it is asked to end."""
        assert self.pod.container("edge")["lifecycle"]["preStop"]["sleep"]["seconds"] > 0
        self._service.ready.discard(self.port)

    def end(self) -> None:
        """The edge ends, and after it the gateway."""
        for name in ("edge", "gateway"):
            process = self._processes.pop(name)
            process.send_signal(signal.SIGTERM)
            code = process.wait(self._spec["terminationGracePeriodSeconds"])
            assert code == Exit.OK, self.pod.log(name).read_text()[-4000:]

    def follow(self) -> None:
        """A second pod with the same volume takes the place of the one that ended."""
        self.pod = self._new_pod()
        self.start()

    def close(self) -> None:
        """End what runs."""
        self._service.ready.discard(self.port)
        self._stack.close()
