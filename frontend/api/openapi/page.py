"""The document as a page for people: one HTML text that asks the network for nothing.

Everything is there without a script; a small one, allowed by its hash, narrows the list. Made from the document alone.
"""

import base64
import hashlib
import re
from html import escape
from http import HTTPStatus
from typing import Any

import msgspec

from frontend.api.openapi.assets import SCRIPT, STYLE
from frontend.api.openapi.schemas import PREFIX

METHODS = ("get", "post", "delete")
WAYS = {
    "lease": "an agent's lease, with a proof",
    "operator": "an operator's key, with a proof",
}


def page_of(document: dict[str, Any]) -> str:
    """The whole page."""
    info, tags = document["info"], document["tags"]
    links = " ".join(f'<a href="#{tag["name"]}">{tag["name"]}</a>' for tag in (*tags, {"name": "schemas"}))
    sections = "".join(_section(document, tag) for tag in tags)
    schemas = "".join(_schema(name, schema) for name, schema in document["components"]["schemas"].items())
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(info['title'])} {escape(info['version'])}</title><style>{STYLE}</style></head><body>"
        f'<h1>{escape(info["title"])} <span class="soft">{escape(info["version"])}</span></h1>'
        f'{_prose(info["description"])}<p>The same as a document: <a href="/openapi.json">openapi.json</a>.</p>'
        f'<nav>{links}</nav>{sections}<h2 id="schemas">schemas</h2>{schemas}<script>{SCRIPT}</script></body></html>\n'
    )


def headers_of() -> tuple[tuple[str, str], ...]:
    """What the browser may do with the page: show it."""
    policy = (
        f"default-src 'none'; style-src '{_source(STYLE)}'; script-src '{_source(SCRIPT)}'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return (
        ("Content-Security-Policy", policy),
        ("X-Content-Type-Options", "nosniff"),
        ("Referrer-Policy", "no-referrer"),
    )


def _source(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _section(document: dict[str, Any], tag: dict[str, Any]) -> str:
    operations = "".join(
        _operation(document, path, method)
        for path, item in document["paths"].items()
        for method in METHODS
        if method in item and tag["name"] in item[method]["tags"]
    )
    return f'<h2 id="{tag["name"]}">{tag["name"]}</h2>{_prose(tag["description"])}{operations}'


def _operation(document: dict[str, Any], path: str, method: str) -> str:
    operation = document["paths"][path][method]
    sockets = [server["description"].partition(" socket")[0] for server in operation["servers"][1:]]
    ways = " or ".join(WAYS[next(iter(way))] for way in operation["security"]) or "nothing"
    parts = [
        _prose(operation.get("description", "")),
        f'<p class="soft">Socket: {escape(" and ".join(sockets))}. Credentials: {escape(ways)}.</p>',
        _parameters(operation.get("parameters", ())),
        _body(operation.get("requestBody")),
        _responses(document, operation["responses"]),
        f"<h4>Try it</h4><pre>{escape(_commands(path, method, operation))}</pre>",
    ]
    return (
        f'<details id="{operation["operationId"]}"><summary><b>{method.upper()}</b> <code>{escape(path)}</code> '
        f'<span class="soft">{_inline(operation["summary"])}</span></summary>{"".join(parts)}</details>'
    )


def _commands(path: str, method: str, operation: dict[str, Any]) -> str:
    samples = [sample["source"] for sample in operation.get("x-codeSamples", ())]
    return "\n".join([*samples, curl(path, method, operation)])


def curl(path: str, method: str, operation: dict[str, Any]) -> str:
    """A command to copy. `proof` is the one of docs/api.md."""
    for parameter in operation.get("parameters", ()):
        if parameter["in"] == "path":
            path = path.replace(f"{{{parameter['name']}}}", str(parameter["example"]))
    words = ["curl", *(["-X", method.upper()] if method != "get" else [])]
    if operation["security"]:
        token = "$LEASE" if "lease" in operation["security"][0] else "$OPERATOR_KEY"
        words += ["-H", f'"Authorization: DPoP {token}"']
        words += ["-H", f'"DPoP: $(proof {method.upper()} {path} {token})"']
    body = operation.get("requestBody")
    if body is not None:
        example = msgspec.json.encode(body["content"]["application/json"]["example"]).decode()
        words += ["--json", "'" + example.replace("'", r"'\''") + "'"]
    return " ".join([*words, f'"$BASE{path}"'])


def _parameters(parameters: Any) -> str:
    rows = "".join(
        f"<tr><td><code>{escape(one['name'])}</code><td>{one['in']}{', required' if one['required'] else ''}"
        f"<td>{_form(one['schema'])}<td>{_inline(one.get('description', ''))}"
        for one in parameters
    )
    return f"<h4>Parameters</h4><table>{rows}</table>" if rows else ""


def _body(body: dict[str, Any] | None) -> str:
    if body is None:
        return ""
    content = body["content"]["application/json"]
    needed = "required" if body["required"] else "may be empty"
    what = f"{_form(content['schema'])} ({needed}) {_inline(body.get('description', ''))}"
    return f"<h4>Body</h4><p>{what}</p><pre>{escape(_pretty(content['example']))}</pre>"


def _responses(document: dict[str, Any], responses: dict[str, Any]) -> str:
    rows, examples, components = "", "", document["components"]
    for status, entry in responses.items():
        shared = entry.get("$ref")
        response = components["responses"][shared.rpartition("/")[2]] if shared else entry
        ((kind, content),) = response["content"].items()
        headers = "".join(f"<br><code>{name}</code>" for name in response.get("headers", ()) if name != "X-Trace-Id")
        if "examples" in content:
            meanings = {code: components["examples"][code].get("summary", "") for code in content["examples"]}
            said = "<br>".join(f"<code>{code}</code> {_inline(meaning)}" for code, meaning in meanings.items())
        else:
            said = f"{_form(content['schema'])} {_inline(response['description'])}"
            if kind != "application/json":
                said = f"<code>{escape(kind)}</code> {said}"
        if "example" in content:
            examples += f"<pre>{escape(_pretty(content['example']))}</pre>"
        rows += f"<tr><th>{status} {HTTPStatus(int(status)).phrase}{headers}<td>{said}"
    return f"<h4>Answers</h4>{examples}<table>{rows}</table>"


def _schema(name: str, schema: dict[str, Any]) -> str:
    needed = schema.get("required", ())
    rows = "".join(
        f"<tr><td><code>{escape(member)}</code>{'' if member in needed else ' <span class=soft>optional</span>'}"
        f"<td>{_form(one)}<td>{_inline(one.get('description', ''))}"
        for member, one in schema.get("properties", {}).items()
    )
    return (
        f'<details id="{name}"><summary><code>{name}</code></summary>'
        f"{_prose(schema.get('description', ''))}<table>{rows}</table></details>"
    )


def _form(schema: dict[str, Any]) -> str:
    """A schema in a few words, with links to those it names."""
    if "$ref" in schema:
        name = schema["$ref"].removeprefix(PREFIX)
        return f'<a href="#{name}">{name}</a>'
    for way in ("anyOf", "oneOf"):
        if way in schema:
            return " or ".join(_form(one) for one in schema[way])
    if "allOf" in schema:
        return _form(schema["allOf"][0])
    if "enum" in schema:
        return " | ".join(f"<code>{escape(str(value))}</code>" for value in schema["enum"])
    words = escape(str(schema.get("type", "any value")))
    if schema.get("items"):
        words = f"array of {_form(schema['items'])}"
    bounds = [
        f"{sign} {schema[name]}"
        for name, sign in (("minimum", "≥"), ("maximum", "≤"), ("minItems", "at least"), ("maxItems", "at most"))
        if name in schema
    ]
    if "pattern" in schema:
        bounds.append(f"<code>{escape(schema['pattern'])}</code>")
    if schema.get("default") is not None:
        bounds.append(f"default {escape(str(schema['default']))}")
    return ", ".join([words, *bounds])


def _pretty(value: Any) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def _prose(text: str) -> str:
    return "".join(f"<p>{_inline(part)}</p>" for part in text.split("\n\n") if part.strip())


def _inline(text: str) -> str:
    markup = re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))
    return re.sub(r"\*\*([^*]+)\*\*", r"<b>\1</b>", markup)
