"""The page shows all of the document, asks the network for nothing, and runs nothing but its own script."""

import base64
import hashlib
import re
import shlex
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import click
import pytest
from gateway_client.cli.main import cli

from frontend.api.openapi.document import document
from frontend.api.openapi.page import curl, headers_of, page_of
from frontend.api.openapi.texts import GATECTL
from frontend.api.routes import ROUTES

DOCUMENT = document(ROUTES)
PAGE = page_of(DOCUMENT)
VOID = {"meta", "br"}
OPTIONAL_END = {"td", "th", "tr"}


class Reader(HTMLParser):
    """The elements of a page; `unclosed` are tags that were opened and not closed."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.unclosed: list[str] = []
        self.text = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.ids += [value for name, value in attrs if name == "id" and value]
        self.links += [value for name, value in attrs if name in ("href", "src") and value]
        if tag not in VOID | OPTIONAL_END:
            self.unclosed.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.unclosed.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_page_is_whole() -> None:
    reader = Reader(PAGE)
    assert reader.unclosed == []
    assert len(set(reader.ids)) == len(reader.ids)


def test_it_asks_the_network_for_nothing() -> None:
    reader = Reader(PAGE)
    assert not reader.tags & {"link", "img", "iframe", "object", "embed", "form", "base", "video", "audio"}
    assert not reader.attributes & {"src", "style", "onclick", "onload", "action"}
    assert all(link.startswith("#") or link == "/openapi.json" for link in reader.links)
    assert "@import" not in PAGE
    assert "url(" not in PAGE


def test_its_policy_lets_run_and_look_what_is_on_it_and_nothing_else() -> None:
    policy = dict(headers_of())["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; ")
    for tag in ("style", "script"):
        (content,) = re.findall(f"<{tag}>(.*?)</{tag}>", PAGE, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}';" in policy
    assert "unsafe" not in policy


def test_every_operation_schema_and_code_is_on_it_and_every_link_leads_to_one() -> None:
    reader = Reader(PAGE)
    operations = [item[method] for item in DOCUMENT["paths"].values() for method in item]
    wanted = {operation["operationId"] for operation in operations} | DOCUMENT["components"]["schemas"].keys()
    assert wanted <= set(reader.ids)
    assert {link[1:] for link in reader.links if link.startswith("#")} <= set(reader.ids)
    for code in DOCUMENT["components"]["examples"]:
        assert code in reader.text


def test_a_text_that_looks_like_a_tag_is_a_text() -> None:
    spoilt: dict[str, Any] = document(ROUTES)
    operation = spoilt["paths"]["/healthz"]["get"]
    operation["summary"] = operation["description"] = "<script>alert(1)</script> & `<b>`"
    assert Reader(page_of(spoilt)).text.count("<script>alert(1)</script> & <b>") == 2


def test_a_command_to_copy_has_all_that_the_operation_asks_for() -> None:
    paths = DOCUMENT["paths"]
    assert curl("/healthz", "get", paths["/healthz"]["get"]) == 'curl "$BASE/healthz"'
    deny = "/v1/approvals/{approval_id}/deny"
    command = curl(deny, "post", paths[deny]["post"])
    assert command.startswith('curl -X POST -H "Authorization: DPoP $OPERATOR_KEY" -H "DPoP: $(proof POST /v1/app')
    assert "--json '{" in command
    assert "{approval_id}" not in command


def test_every_gatectl_command_on_it_is_one_that_gatectl_takes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "request.json").write_text("{}")
    text = Reader(PAGE).text
    operations = {item[method]["operationId"] for item in DOCUMENT["paths"].values() for method in item}
    assert GATECTL.keys() <= operations
    for item in DOCUMENT["paths"].values():
        for operation in item.values():
            for sample in operation.get("x-codeSamples", ()):
                name, *words = shlex.split(sample["source"])
                assert name == "gatectl"
                assert f"{sample['source']}\n" in text
                command: click.Command = cli
                while isinstance(command, click.Group):
                    command = command.commands[words.pop(0)]
                command.make_context(command.name, words)
