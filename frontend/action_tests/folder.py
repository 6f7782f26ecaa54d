"""The folder that `gateway test actions` is given: its manifests, and the tests beside them."""

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from frontend.action_tests.form import ActionTest, read_tests
from frontend.actions.registry import load_manifests
from frontend.files.problems import FileProblem, Report
from frontend.manifests.file_names import TESTS_ENDING, is_tests_name
from frontend.manifests.manifest import Manifest
from ipc.configuration.secret_ways import AsToken
from ipc.mcp_tools import tool_digest
from ipc.texts.canonical import NotCanonical


class TestedFolder(msgspec.Struct, frozen=True):
    """Every manifest of the folder, and each test with the manifest that it tests."""

    __test__ = False

    manifests: tuple[Manifest, ...]
    tests: tuple[tuple[Manifest, ActionTest], ...]

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts that a call of these actions may reach by an exact name."""
        return tuple(sorted({host for one in self.manifests for host in _hosts(one)} | self._expected()))

    @property
    def token_urls(self) -> frozenset[str]:
        """The addresses of the token servers that the actions need."""
        ways = (secret.way for one in self.manifests for secret in one.secrets)
        return frozenset(way.token_url for way in ways if isinstance(way, AsToken))

    @property
    def token_hosts(self) -> tuple[str, ...]:
        """The hosts of token servers that are no upstream's, too."""
        return tuple(sorted({host for url in self.token_urls if (host := _host_of(url))} - set(self.hosts)))

    @property
    def secrets(self) -> tuple[str, ...]:
        """The names of all secrets."""
        return tuple(sorted({secret.name for one in self.manifests for secret in one.secrets}))

    @property
    def scopes(self) -> tuple[str, ...]:
        """The scopes that the actions require."""
        return tuple(sorted({"tools:call"} | {scope for one in self.manifests for scope in one.required_scopes}))

    def _expected(self) -> set[str]:
        urls = (test.expect.sends.get("url") for _, test in self.tests)
        return {host for url in urls if isinstance(url, str) and (host := _host_of(url))}


def read_folder(folder: Path) -> tuple[TestedFolder, list[FileProblem]]:
    """The folder, and every problem; with problems it may not be used."""
    manifests, problems = load_manifests(folder, has_proxy=False)
    by_name = {Path(one.file).stem: one for one in manifests}
    tests: list[tuple[Manifest, ActionTest]] = []
    try:
        names = sorted(path.name for path in folder.iterdir() if is_tests_name(path.name))
    except OSError:
        return TestedFolder((), ()), problems
    for name in names:
        report = Report(str(folder / name))
        manifest = by_name.get(name.removesuffix(TESTS_ENDING))
        found = read_tests(folder / name, report)
        if manifest is not None:
            tests += [(manifest, test) for test in found]
            _refuse_unplayed(manifest, found, report)
        elif not problems:
            report.add(0, "", "there is no manifest of this name beside it.", "Name it as the manifest of its action.")
        problems += report.problems
    if not names:
        problems.append(FileProblem(str(folder), 0, "", f"no file *{TESTS_ENDING} is here.", "Write one."))
    return TestedFolder(manifests, tuple(tests)), sorted(problems)


def _refuse_unplayed(manifest: Manifest, tests: list[ActionTest], report: Report) -> None:
    """Note each test whose tool is not the one that its manifest pins."""
    for test in tests:
        tool = test.upstream.tool if test.upstream else None
        if manifest.mcp is None:
            if tool is not None:
                report.add(test.line, "upstream.tool", "the action calls no tool of an MCP server.", "Remove it.")
        elif (
            test.is_run and not (test.upstream and test.upstream.error) and _digest_of(tool) != manifest.mcp.tool_digest
        ):
            message = "upstream.tool must be the tool that the manifest pins, as the MCP server lists it."
            mend = "Write its name, description and inputSchema, or leave out upstream, result and outcome."
            report.add(test.line, "upstream.tool", message, mend)


def _digest_of(tool: dict[str, Any] | None) -> str:
    try:
        return "" if tool is None else tool_digest(tool)
    except NotCanonical:
        return ""


def _hosts(manifest: Manifest) -> set[str]:
    names = {name for name in manifest.egress.allowed_domains if not name.startswith("*")}
    host = None if manifest.template is None else _host_of(manifest.template.url_template)
    return names if host is None or "{" in host else names | {host}


def _host_of(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None
