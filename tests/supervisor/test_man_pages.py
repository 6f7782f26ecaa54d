"""Man pages, which are made of the parsers."""

import re
import shutil
import subprocess

import pytest
from gateway_client.cli.main import cli

from scripts.man_pages import pages
from supervisor.cli import command_parser

PAGES = pages()


def test_each_command_has_a_page_and_the_first_page_lists_them() -> None:
    words = {
        "gateway": re.findall(r"^    ([a-z-]+)(?: |$)", command_parser().format_help(), re.MULTILINE),
        "gatectl": [*cli.commands],
    }
    assert {*words, *(f"{name}-{word}" for name in words for word in words[name])} == set(PAGES)
    assert {"gateway-run", "gatectl-approvals"} < set(PAGES)
    for name in words:
        listed = re.findall(rf"^\\fB{name}\\-(\S+)\\fR\(1\)$", PAGES[name], re.MULTILINE)
        assert [word.replace("\\-", "-") for word in listed] == words[name]


def test_a_page_has_the_options_of_its_command_and_of_those_below() -> None:
    assert "\\fB\\-\\-config FILE\\fR" in PAGES["gateway-run"]
    assert ".SH VERIFY" in PAGES["gateway-ledger"].replace('"', "")
    assert "\\fB\\-\\-checkpoint\\-key KEY\\fR" in PAGES["gateway-ledger"]
    assert '.SH "STANDING ADD"' in PAGES["gatectl-approvals"]
    assert "\\fB\\-\\-principal NAME\\fR" in PAGES["gatectl-approvals"]
    assert PAGES["gatectl-approvals"].count("\\-\\-operator\\-key\\-file") == 1


@pytest.mark.skipif(shutil.which("groff") is None, reason="there is no groff to read pages with")
@pytest.mark.parametrize("name", PAGES)
def test_groff_reads_a_page_without_a_warning(name: str) -> None:
    command = ["groff", "-man", "-Kutf8", "-Tutf8", "-ww", "-z"]
    done = subprocess.run(command, input=PAGES[name], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
