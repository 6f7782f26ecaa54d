"""Rules between the sections of a manifest.

Each rule keeps a promise of the manifest from being empty: an import without its section, a verifier that would never
see anything, a placeholder that nothing fills, a secret that could not be added.
"""

import re
from contextlib import suppress
from typing import Any
from urllib.parse import unquote

from frontend.files.problems import Report
from frontend.manifests.expressions import TemplateRefused
from frontend.manifests.kept import check_kept
from frontend.manifests.manifest import Files, Manifest
from frontend.manifests.mcp_coherence import check_mcp
from frontend.manifests.policy_input import check_policy_input
from frontend.manifests.response import check_exchange
from frontend.manifests.schemacheck import check_schema
from frontend.manifests.shapes import is_object, properties_of, required_of
from frontend.manifests.template_coherence import check_template
from frontend.manifests.templates import CREDENTIAL_HEADERS
from frontend.manifests.urls import UrlTemplate
from frontend.manifests.yamltree import Node, Path, dotted
from ipc.limits import MAX_SHARED_MEMORY_MB
from ipc.network.domains import matches
from ipc.network.framing_headers import is_framing_header
from ipc.plan import SecretUse
from ipc.texts.pointers import steps_of
from ipc.verifiers import VERIFIERS, PointerField, SchemaField


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
        check_exchange(self._manifest, self._tree, self._report)
        if self._manifest.template:
            check_template(self._manifest, self._manifest.template, self._tree, self._report)
        if self._manifest.files:
            self._files(self._manifest.files)
        check_mcp(self._manifest, self._note)
        check_kept(self._manifest, self._note)
        check_policy_input(self._manifest, self._note)

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
            if header is not None and is_framing_header(header) and header.lower() not in CREDENTIAL_HEADERS:
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
            message = f"{field} does not have {host}, to which every request goes."
            self._note(path, message, "Add it there, or remove the list: it is the default.")

    def _template_host(self) -> str | None:
        template = self._manifest.template
        with suppress(TemplateRefused):  # told where the template is looked at
            if self._manifest.mcp is not None:
                return UrlTemplate(self._manifest.mcp.url).host
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
        for name in steps_of(str(pointer)):
            if not is_object(schema) or name not in properties_of(schema) or name not in required_of(schema):
                message = f"{dotted(path)} = {pointer}: io.request_schema does not require it."
                mend = "Declare it there, in an object (type: object), and add it to `required`."
                self._note(path, message, mend)
                return
            schema = properties_of(schema)[name]


def _has_parameter(url_template: str, name: str) -> bool:
    """True if the query of the template has the parameter, written out or from a variable."""
    query = url_template.partition("?")[2]
    words = (word.partition("=")[0].strip("*") for word in re.split(r"[?&,{}]", query))
    return name in map(unquote, words)
