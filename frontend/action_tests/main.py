"""The program behind `gateway test actions`: reads the folder, writes a configuration for a gateway, runs the tests.

The command starts the gateway once the configuration stands in the work folder, and hands its ready line on. Ends with
78 where the folder has problems, with 1 where a test fails.
"""

import argparse
import os
import shutil
import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import msgspec

from frontend.action_tests.authority import make_authority
from frontend.action_tests.client import ProvenClient, RunningGateway
from frontend.action_tests.folder import TestedFolder, read_folder
from frontend.action_tests.running import TestReport, TestRunner
from frontend.action_tests.told import table, tap
from frontend.action_tests.upstream import UpstreamServer
from ipc.process.exits import Exit
from ipc.process.output import flushed
from ipc.process.parent import die_with_parent
from ipc.process.process_speed import leave

CONFIGURATION = "gateway.toml"
MOST_ACTIONS = 256
"""Actions of one grant."""


class PlayedServers(NamedTuple):
    """The servers of one run. Token servers answer also while the upstream refuses connections."""

    upstream: UpstreamServer
    tokens: UpstreamServer


def configuration(
    folder: Path, work: Path, tested: TestedFolder, principal: str, servers: PlayedServers, policy: str
) -> str:  # fmt: skip
    """The configuration in which this user is the principal. JSON texts are texts of TOML, too."""
    told = msgspec.json.encode
    lines = [
        f"manifests_dir = {told(str(folder)).decode()}",
        *([f"policy_dir = {told(policy).decode()}"] if policy else []),
        "[identity]",
        'provider = "peercred"',
        f"[identity.peercred.principals.{os.geteuid()}]",
        f"principal = {told(principal).decode()}",
        f"scopes = {told(tested.scopes).decode()}",
        "[secrets]",
        f"file = {told(str(work / 'secrets.json')).decode()}",
        "[egress.unsafe_resolve]",
        *(f"{told(host).decode()} = {told(servers.upstream.address).decode()}" for host in tested.hosts),
        *(f"{told(host).decode()} = {told(servers.tokens.address).decode()}" for host in tested.token_hosts),
    ]
    return "\n".join(lines) + "\n"


def run_all(
    options: argparse.Namespace, tested: TestedFolder, servers: PlayedServers, policy: str
) -> Iterator[TestReport]:
    """Run the tests of one principal after those of another. Raises OSError or ValueError."""
    tests = sorted(tested.tests, key=lambda pair: pair[1].principal)
    _configure(options, tested, tests[0][1].principal, servers, policy)
    os.write(options.told_fd, b"configured\n")
    os.close(options.told_fd)
    with os.fdopen(options.ready_fd, "rb") as ready:
        gateway = msgspec.json.decode(ready.read(), type=RunningGateway)
    operator = ProvenClient.of_operator(gateway)
    for principal, group in groupby(tests, key=lambda pair: pair[1].principal):
        if principal != tests[0][1].principal:
            _configure(options, tested, principal, servers, policy)
            _done(operator, "/v1/admin/reload")
        if not options.policy:
            ids = [one.action_id for one in tested.manifests]
            for start in range(0, len(ids), MOST_ACTIONS):
                asked = {"principal": principal, "actions": ids[start : start + MOST_ACTIONS]}
                _done(operator, "/v1/admin/policy/grant", asked)
        runner = TestRunner(
            operator, ProvenClient.of_agent(gateway, tested.scopes), servers.upstream, tested.scopes, tested.hosts
        )
        for manifest, test in group:
            yield runner.run(manifest.action_id, test)


def _configure(
    options: argparse.Namespace, tested: TestedFolder, principal: str, servers: PlayedServers, policy: str
) -> None:  # fmt: skip
    work = Path(options.work)
    text = configuration(Path(options.folder), work, tested, principal, servers, policy)
    (work / CONFIGURATION).write_text(text)


def _done(operator: ProvenClient, path: str, body: object = None) -> None:
    answer = operator.send("POST", path, body)
    if answer.status != 200:
        raise ValueError(f"{path}: {answer.status} {msgspec.json.encode(answer.body).decode()}")


def _own_policy(options: argparse.Namespace) -> str:
    """A copy of the policy folder in the work folder; empty where none is named. Raises OSError."""
    if not options.policy:
        return ""
    copy = Path(options.work) / "policy"
    copy.mkdir()
    for source in Path(options.policy).iterdir():
        if source.suffix in {".rego", ".json"}:
            shutil.copyfile(source, copy / source.name)
    return str(copy)


def main() -> int:
    """Entry point; returns an exit code."""
    parser = argparse.ArgumentParser(prog="frontend.action_tests.main", allow_abbrev=False)
    for name in ("--folder", "--work"):
        parser.add_argument(name, required=True)
    parser.add_argument("--policy", default="")
    parser.add_argument("--tap", action="store_true")
    for name in ("--parent", "--told-fd", "--ready-fd"):
        parser.add_argument(name, type=int, required=True)
    options = parser.parse_args()
    die_with_parent(options.parent)
    tested, problems = read_folder(Path(options.folder))
    if problems:
        print(*problems, sep="\n", file=sys.stderr)
        return Exit.CONFIG
    work = Path(options.work)
    secrets = work / "secrets.json"
    secrets.touch(mode=0o600)
    secrets.write_bytes(msgspec.json.encode({name: f"placeholder-of-{name}" for name in tested.secrets}))
    try:
        tls = make_authority(work, (*tested.hosts, *tested.token_hosts))
        servers = PlayedServers(*(UpstreamServer(tls, tested.token_urls) for _ in range(2)))
        reports = {id(one.test): one for one in run_all(options, tested, servers, _own_policy(options))}
        servers.upstream.close()
        servers.tokens.close()
    except (OSError, ValueError) as error:
        print(f"gateway: the tests could not be run: {error}.", file=sys.stderr)
        return Exit.FAILED
    ordered = [reports[id(test)] for _, test in tested.tests]
    has_failed = any(one.differences for one in ordered)
    return flushed(Exit.FAILED if has_failed else Exit.OK, (tap if options.tap else table)(ordered))


if __name__ == "__main__":
    leave(main())
