"""Rules between the sections of a manifest.

Each rule keeps a promise of the manifest from being empty: an import without its section, a verifier that would never
see anything, a placeholder that nothing fills, a secret that could not be added.
"""

import re
from contextlib import suppress
from typing import Any

from frontend.files.problems import Report, did_you_mean
from frontend.manifests.manifest import Files, Manifest, RequestTemplate
from frontend.manifests.schemacheck import check_schema
from frontend.manifests.templates import (
    CREDENTIAL_HEADERS,
    FRAMING_HEADERS,
    CompiledTemplate,
    compiled,
    embedded,
    is_json_type,
    slots,
)
from frontend.manifests.urls import TemplateRefused, UrlTemplate
from frontend.manifests.yamltree import Node, Path, dotted
from ipc.limits import MAX_SHARED_MEMORY_MB
from ipc.network.domains import matches
from ipc.plan import SecretUse
from ipc.verifiers import VERIFIERS, PointerField, SchemaField

_SCALARS = ("string", "integer", "number", "boolean")


def check_coherence(manifest: Manifest, tree: Node, report: Report, *, has_proxy: bool) -> None:
    """Note every rule that `manifest`, read from `tree`, breaks."""
    _Checker(manifest, tree, report).check(has_proxy)


class _Checker:
    def __init__(self, manifest: Manifest, tree: Node, report: Report) -> None:
        self._manifest = manifest
        self._tree = tree
        self._report = report

    def check(self, has_proxy: bool) -> None:
        self._imports()
        self._isolation()
        self._egress(has_proxy)
        self._secrets()
        self._verifier()
        self._schemas()
        if self._manifest.template:
            self._template(self._manifest.template)
        if self._manifest.files:
            self._files(self._manifest.files)

    def _note(self, path: Path, message: str, mend: str) -> None:
        self._report.add(self._tree.line_at(path), dotted(path), message, mend)

    def _has(self, name: str) -> bool:
        return name in self._manifest.required_imports

    def _imports(self) -> None:
        if self._has("http") and self._has("fs"):
            message = "required_imports lists both http and fs: one provider has one kind of effect."
            self._note(("required_imports",), message, "Split the action in two.")
        if self._has("fs") and not self._manifest.files:
            self._note(
                ("required_imports",), "required_imports lists fs, but there is no section fs.", "Add the section."
            )
        if self._manifest.files and not self._has("fs"):
            self._note(
                ("fs",), "the section fs needs the import fs.", "Add fs to required_imports, or remove the section."
            )

    def _isolation(self) -> None:
        if self._manifest.isolation == "shared" and not self._manifest.may_share:
            message = (
                "isolation = shared is for built-in modules with the import http alone, and with memory_mb of at most "
                f"{MAX_SHARED_MEMORY_MB}."
            )
            self._note(("isolation",), message, "Write pooled, or remove it.")

    def _egress(self, has_proxy: bool) -> None:
        rules = self._manifest.egress
        if rules.profile == "none":
            if self._has("http"):
                message = "required_imports lists http, but egress.profile is none."
                self._note(
                    ("required_imports",), message, "Set egress.profile to direct_allowlist, or remove the import."
                )
            if rules.allowed_domains or rules.allowed_methods:
                message = "egress lists domains or methods, but egress.profile is none."
                self._note(("egress",), message, "Set egress.profile to direct_allowlist.")
            return
        if not self._has("http"):
            message = f"egress.profile = {rules.profile} needs the import http."
            self._note(("egress", "profile"), message, "Add http to required_imports, or set it to none.")
        if rules.profile == "proxy_allowlist" and not has_proxy:
            message = "egress.profile = proxy_allowlist, but egress_proxy_url is not set."
            self._note(
                ("egress", "profile"), message, "Set egress_proxy_url in the configuration, or use direct_allowlist."
            )
        template = self._manifest.template
        if not rules.allowed_methods and not template:
            self._note(("egress",), "egress.allowed_methods is missing.", "List the methods the provider may use.")
        if rules.allowed_methods and template and template.method and template.method not in rules.allowed_methods:
            message = f"template.method = {template.method} is not among egress.allowed_methods."
            self._note(("template", "method"), message, "Add it there.")

    def _secrets(self) -> None:
        used: dict[str, str] = {}
        template = self._manifest.template
        for name, _ in template.headers if template else ():
            used[f"the header {name}".lower()] = "template.headers sets it too"
        for index, secret in enumerate(self._manifest.secrets):
            self._bound(("secrets", index, "domains"), secret)
            if secret.way is None:
                continue
            path = ("secrets", index, "inject", secret.way.member)
            if not self._has("http"):
                message = f"the secret {secret.name} is added to a request, which needs the import http."
                self._note(path, message, "Add http to required_imports, or remove inject.")
            header, parameter = secret.way.header_name, secret.way.parameter_name
            if header is not None and header.lower() in FRAMING_HEADERS:
                self._note(path, f"the header {header} is the gateway's own.", "Use another header.")
            place = f"the header {header}" if header is not None else f"the query parameter {parameter}"
            if parameter is not None and template and _has_parameter(template.url_template, parameter):
                self._note(path, f"{place} has two sources: template.url_template sets it too.", "Keep one of them.")
            if place.lower() in used:
                self._note(path, f"{place} has two sources: {used[place.lower()]}.", "Keep one of them.")
            used[place.lower()] = f"the secret {secret.name} is added to it"

    def _bound(self, path: Path, secret: SecretUse) -> None:
        """Hosts of a secret that would never be sent to them."""
        if self._tree.at(path) is None:
            return
        field = dotted(path)
        if not secret.domains:
            self._note(path, f"{field} is empty, so the secret would never be sent.", "Name a host, or remove it.")
        elif secret.way is None:
            message = f"{field} names hosts, but the secret {secret.name} is added to no request."
            self._note(path, message, "Add inject, or remove the list.")
        host = self._template_host()
        if host is not None and secret.domains and not matches(host, secret.domains):
            message = f"{field} does not have {host}, to which template.url_template sends every request."
            self._note(path, message, "Add it there, or remove the list: it is the default.")

    def _template_host(self) -> str | None:
        template = self._manifest.template
        with suppress(TemplateRefused):  # told where the template is looked at
            return UrlTemplate(template.url_template).host if template else None
        return None

    def _verifier(self) -> None:
        kind = self._manifest.verifier_kind
        needed = VERIFIERS[kind].needs_import
        if needed and not self._has(needed):
            message = f"verifier_kind = {kind} needs the import {needed}."
            self._note(("verifier_kind",), message, "Add the import, or use another verifier.")
        for field in VERIFIERS[kind].config:
            match field:
                case SchemaField(name):
                    self._result_schema(kind, name)
                case PointerField() if self._manifest.files:
                    self._verified_pointer(self._manifest.files, field)

    def _result_schema(self, kind: str, name: str) -> None:
        schema = self._manifest.verification_config.get(name)
        if not schema and self._manifest.io.response_schema is None:
            message = f"verifier_kind = {kind} needs io.response_schema."
            self._note(("verifier_kind",), message, "Add the schema, or use another verifier.")
        if isinstance(schema, dict):
            check_schema(schema, ("verification_config", name), self._tree, self._report)

    def _verified_pointer(self, files: Files, field: PointerField) -> None:
        path = ("verification_config", field.name)
        default = files.path_pointer if field.is_path else field.default
        given = self._manifest.verification_config.get(field.name, default)
        if not field.is_path:
            self._pointer(path, given)
        elif given != default:
            self._note(path, f"{dotted(path)} names another file than fs.path_pointer.", "Remove it.")

    def _schemas(self) -> None:
        io = self._manifest.io
        for name, schema in (("request_schema", io.request_schema), ("response_schema", io.response_schema)):
            if schema is not None:
                check_schema(schema, ("io", name), self._tree, self._report)

    def _template(self, template: RequestTemplate) -> None:
        if not self._has("http"):
            self._note(("template",), "the section template needs the import http.", "Add http to required_imports.")
        if self._manifest.io.request_schema is not None and not _is_object(self._manifest.io.request_schema):
            message = "a template takes its values from an object, which io.request_schema does not ask for."
            self._note(("io", "request_schema"), message, "Add type: object.")
        for header, value in template.headers:
            path = ("template", "headers", header)
            if header.lower() in FRAMING_HEADERS:
                self._note(path, f"the header {header} is the gateway's own.", "Remove it.")
            self._body_type(path, header, value)
            if header.lower() in CREDENTIAL_HEADERS:
                message = f"the header {header} holds credentials, which a template would show."
                self._note(path, message, "Declare a secret with inject.")
            self._placeholders(path, value)
        self._placeholders(("template", "body_template"), template.body_template)
        body = self._tree.at(("template", "body_template"))
        if body is not None:
            self._quotes(("template", "body_template"), body)
        if template.url_template:
            self._url(template)

    def _body_type(self, path: Path, header: str, value: str) -> None:
        """Note a Content-Type or Accept-Encoding that contradicts the body or the secrets."""
        has_body = self._manifest.template is not None and self._manifest.template.body_template is not None
        if header.lower() == "content-type" and has_body and not is_json_type(value):
            message = f"{dotted(path)} = {value}: template.body_template makes JSON, which the upstream would misread."
            self._note(path, message, "Write application/json, or remove the header.")
        adds_secrets = any(secret.way is not None for secret in self._manifest.secrets)
        if header.lower() == "accept-encoding" and adds_secrets:
            message = f"{dotted(path)} = {value}: an answer that is encoded can't be searched for secrets."
            self._note(path, message, "Remove the header.")

    def _url(self, template: RequestTemplate) -> None:
        path = ("template", "url_template")
        try:
            url = CompiledTemplate(template).url
        except TemplateRefused as error:
            self._note(path, f"template.url_template: {error}.", error.mend)
            return
        required = _required(self._manifest.io.request_schema)
        for name in dict.fromkeys(url.variables):
            if not self._is_declared(path, name):
                continue
            if not _may_be_scalar(self._properties()[name]):
                self._note(
                    path, f"{{{name}}} is neither text nor a number in io.request_schema.", "Use another property."
                )
            if name in url.needed and name not in required:
                message = f"{{{name}}} stands in the host or path, but io.request_schema does not require it."
                self._note(path, message, "Add it to `required`, or move it to the query.")

    def _placeholders(self, path: Path, value: Any) -> None:
        """Slots must be declared; a declared name inside a longer string looks like a slot, but is not replaced."""
        for name in sorted(slots(compiled(value))):
            self._is_declared(path, name)
        for name in sorted(embedded(value) & self._properties().keys()):
            message = f"{dotted(path)} holds {{{name}}} inside a longer text, where nothing is put in its place."
            self._note(path, message, f'Write "{{{name}}}" as the whole text.')

    def _quotes(self, path: Path, node: Node) -> None:
        """A placeholder without quotes is a mapping to YAML, and would be sent as one."""
        if node.is_bare:
            message = f"{dotted(path)} holds braces without quotes, which YAML takes for a mapping with an empty value."
            self._note(path, message, 'Quote it, as "{name}"; for an empty value write null.')
        elif isinstance(node.value, dict):
            for name, member in node.value.items():
                self._quotes((*path, name), member)
        elif isinstance(node.value, list):
            for index, item in enumerate(node.value):
                self._quotes((*path, index), item)

    def _is_declared(self, path: Path, name: str) -> bool:
        known = self._properties()
        if name in known:
            return True
        message = f"{dotted(path)} uses {{{name}}}, which io.request_schema does not declare."
        self._note(path, message, did_you_mean(name, known) if known else "Add it to io.request_schema.properties.")
        return False

    def _properties(self) -> dict[str, Any]:
        return _properties(self._manifest.io.request_schema)

    def _files(self, files: Files) -> None:
        if not files.allowed_operations:
            self._note(("fs",), "fs.allowed_operations is missing.", "List the operations the provider may use.")
        elif files.operation and files.operation not in files.allowed_operations:
            message = f"fs.operation = {files.operation} is not among fs.allowed_operations."
            self._note(("fs", "operation"), message, "Add it there.")
        self._pointer(("fs", "path_pointer"), files.path_pointer)

    def _pointer(self, path: Path, pointer: object) -> None:
        """Note a pointer to a value that not every request has."""
        schema: Any = self._manifest.io.request_schema
        for step in str(pointer).split("/")[1:]:
            name = step.replace("~1", "/").replace("~0", "~")
            if not _is_object(schema) or name not in _properties(schema) or name not in _required(schema):
                message = f"{dotted(path)} = {pointer}: io.request_schema does not require it."
                mend = "Declare it there, in an object (type: object), and add it to `required`."
                self._note(path, message, mend)
                return
            schema = _properties(schema)[name]


def _has_parameter(url_template: str, name: str) -> bool:
    """True if the query of the template has the parameter, written out or from a variable."""
    query = url_template.partition("?")[2]
    words = (word.partition("=")[0].strip("*") for word in re.split(r"[?&,{}]", query))
    return name in words


def _is_object(schema: Any) -> bool:
    return isinstance(schema, dict) and schema.get("type") == "object"


def _properties(schema: Any) -> dict[str, Any]:
    properties = schema.get("properties") if isinstance(schema, dict) else None
    return properties if isinstance(properties, dict) else {}


def _required(schema: Any) -> list[Any]:
    names = schema.get("required") if isinstance(schema, dict) else None
    return names if isinstance(names, list) else []


def _may_be_scalar(schema: Any) -> bool:
    """False only where `type` says that the value is neither text nor a number."""
    kinds = schema.get("type", "string") if isinstance(schema, dict) else "string"
    return kinds in _SCALARS or (isinstance(kinds, list) and any(kind in _SCALARS for kind in kinds))
