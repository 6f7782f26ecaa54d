"""Pods played on this machine, from their specification: volumes laid as the kubelet lays them, each container with its
user, its groups, no capability, a read-only root and its own mounts.

Only files, users and rights are played: the image is this machine's root, and no system call is filtered. Needs root.
"""

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.gateway import gone_afterwards
from tests.support.kubernetes import Resource
from tests.support.manifests import REPOSITORY
from tests.support.processes import GATEWAY

COMMAND_SECONDS = 120
Contents = Mapping[str, Mapping[str, bytes]]
"""ConfigMaps and Secrets: name -> file -> bytes."""


@dataclass
class Pod:
    """One pod: its specification, and its volumes below `folder`."""

    spec: Resource
    contents: Contents
    folder: Path
    within: Sequence[str] = ()
    """The start of every command, for a pod in a network of its own."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables that win over those of the specification."""

    def __post_init__(self) -> None:
        group = self.spec["securityContext"]["fsGroup"]
        for volume in self.spec["volumes"]:
            if "configMap" in volume or "secret" in volume:
                self.fill(volume)
            else:
                self._make(volume["name"], group)
        for claimed in {mount["name"] for one in self._containers() for mount in one["volumeMounts"]}:
            self._make(claimed, group)

    def volume(self, name: str) -> Path:
        """The folder of a volume."""
        return self.folder / "volumes" / name

    def fill(self, volume: Resource) -> None:
        """Lay a ConfigMap or Secret, as it is in `contents` now: a new folder, then a swap of the link `..data`."""
        source = volume.get("configMap") or volume["secret"]
        contents = self.contents[source.get("name") or source["secretName"]]
        listed = [one["key"] for one in source["items"]] if "items" in source else list(contents)
        folder, group = self.volume(volume["name"]), self.spec["securityContext"]["fsGroup"]
        if not folder.exists():
            self._make(volume["name"], group, 0o3777)
        data = folder / f"..2026_{len(os.listdir(folder))}"
        data.mkdir()
        for name in listed:
            (data / name).write_bytes(contents[name])
            os.chown(data / name, 0, group)
            (data / name).chmod(source.get("defaultMode", 0o644) | 0o040)
            if not (folder / name).is_symlink():
                (folder / name).symlink_to(f"..data/{name}")
        (folder / "..data_tmp").symlink_to(data.name)
        (folder / "..data_tmp").rename(folder / "..data")

    def _make(self, name: str, group: int, mode: int = 0o2777) -> None:
        folder = self.volume(name)
        if not folder.exists():
            folder.mkdir(parents=True)
            os.chown(folder, 0, group)
            folder.chmod(mode)

    def container(self, name: str) -> Resource:
        """Its specification."""
        return next(one for one in self._containers() if one["name"] == name)

    def _containers(self) -> list[Resource]:
        return [*self.spec.get("initContainers", ()), *self.spec["containers"]]

    def command(self, name: str, *instead: str) -> list[str]:
        """The command line that is the container's process; `instead` runs another program in such a container."""
        container = self.container(name)
        walls, group = container["securityContext"], self.spec["securityContext"]["fsGroup"]
        values = {one["name"]: one["value"] for one in container.get("env", ())} | dict(self.environment)
        rights = ["setpriv", f"--reuid={walls['runAsUser']}", f"--regid={walls['runAsGroup']}", f"--groups={group}",
                  "--inh-caps=-all", "--bounding-set=-all", "--no-new-privs"]  # fmt: skip
        clean = ["env", "-i", "PATH=/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE=1"]
        program = instead or (*container.get("command", ["gateway"]), *container.get("args", ()))
        program = (str(GATEWAY), *program[1:]) if program[0] == "gateway" else program
        run = [*rights, *clean, *(f"{one}={value}" for one, value in values.items()), *program]
        script = "\n".join(("set -eu", *self._mounts(container), f"exec {shlex.join(run)}"))
        return [*self.within, "unshare", "--mount", "--propagation", "private", "sh", "-c", script]

    def _mounts(self, container: Resource) -> Iterator[str]:
        """Commands that lay the container's files."""
        work = shlex.quote(str(self.folder / "mounts"))
        mounts = {mount["mountPath"]: mount for mount in container["volumeMounts"]}
        yield f"mkdir -p {work}; mount -t tmpfs -o mode=755 tmpfs {work}"
        for number, path in enumerate(_needed()):
            yield f"mkdir -p {work}/{number}; mount --bind {shlex.quote(path)} {work}/{number}"
        for mount in container["volumeMounts"]:
            seen = f"{work}/v/{mount['name']}"
            yield f"mkdir -p {seen}; mount --bind {shlex.quote(str(self.volume(mount['name'])))} {seen}"
            if mount.get("readOnly"):
                yield f"mount -o remount,bind,ro {seen}"
        tops = sorted({place.split("/")[1] for place in mounts} - {"tmp"})
        # In these folders of this machine's root the image's mount points can be made.
        for top in tops:
            yield f"mkdir -p {work}/u/{top} {work}/w/{top}"
            yield f"mount -t overlay overlay -o lowerdir=/{top},upperdir={work}/u/{top},workdir={work}/w/{top} /{top}"
        for place, mount in sorted(mounts.items()):
            if place != "/tmp":
                yield f"mkdir -p {place}; mount --bind {work}/v/{mount['name']} {place}"
        closed = {folder for path in _needed() if (folder := _closed(path))}
        for place in [*sorted(closed), *({"/tmp"} & set(mounts))]:
            held = [number for number, path in enumerate(_needed()) if Path(path).is_relative_to(place)]
            within = f"{work}/c{len(place)}"
            yield f"mkdir -p {within}"
            yield f"mount --bind {work}/v/tmp {within}" if place == "/tmp" else f"mount -t tmpfs -o mode=755 t {within}"
            for number in held:
                inner = shlex.quote(within + _needed()[number].removeprefix(place))
                yield f"mkdir -p {inner}; mount --bind {work}/{number} {inner}"
            yield f"mount --rbind {within} {place}"
        yield from (f"mount -o remount,bind,ro /{top}" for top in tops)
        yield "mount -o remount,bind,ro /"

    def run(self, name: str, *instead: str) -> "subprocess.CompletedProcess[str]":
        """Run a container, or another program in one, to its end."""
        return subprocess.run(
            self.command(name, *instead), cwd="/", capture_output=True, text=True, timeout=COMMAND_SECONDS, check=False
        )

    @contextmanager
    def running(self, name: str) -> Iterator["subprocess.Popen[str]"]:
        """Run a container with the block; its log is `NAME.log`."""
        with self.log(name).open("ab") as log:
            process = subprocess.Popen(
                self.command(name), cwd="/", stdin=subprocess.DEVNULL, stdout=log, stderr=log, text=True
            )
        with gone_afterwards(process):
            yield process

    def log(self, name: str) -> Path:
        """Where a container's output is."""
        return self.folder / f"{name}.log"


def _needed() -> tuple[str, ...]:
    """Folders that an image would have elsewhere: the interpreter's, its libraries', and the code's."""
    return tuple(dict.fromkeys((sys.base_prefix, sys.prefix, str(REPOSITORY))))


def _closed(path: str) -> str | None:
    """The first folder on the way to this one that other users may not pass."""
    ways = [*reversed(Path(path).parents), Path(path)]
    return next((str(one) for one in ways if not one.stat().st_mode & 0o001), None)
