"""Rules between a manifest's template and its other sections: each placeholder has a property that can stand there."""

from frontend.files.problems import Report, did_you_mean
from frontend.manifests.bodies import CompiledBody, bodies_of
from frontend.manifests.expressions import TemplateRefused, Variable
from frontend.manifests.manifest import Manifest, RequestTemplate
from frontend.manifests.placeholders import Compiled, Slot, compiled, names_in_keys, slots, texts
from frontend.manifests.shapes import (
    is_object,
    may_be_flat_object,
    may_be_list,
    may_be_open_object,
    may_be_scalar,
    properties_of,
    required_of,
)
from frontend.manifests.templates import CREDENTIAL_HEADERS
from frontend.manifests.urls import UrlTemplate
from frontend.manifests.yamltree import Node, Path, dotted
from ipc.network.framing_headers import is_framing_header

_NO_TEXT = "is neither text, a number nor a flag in io.request_schema"
_NO_LIST = "is neither text, a number, a flag nor a list of them in io.request_schema"


def check_template(manifest: Manifest, template: RequestTemplate, tree: Node, report: Report) -> None:
    """Note every rule that `template`, of `manifest` read from `tree`, breaks."""
    _TemplateChecker(manifest, template, tree, report).check()


class _TemplateChecker:
    def __init__(self, manifest: Manifest, template: RequestTemplate, tree: Node, report: Report) -> None:
        self._manifest = manifest
        self._template = template
        self._tree = tree
        self._report = report
        self._bodies = bodies_of(template)
        self._known = properties_of(manifest.io.request_schema)
        self._required = required_of(manifest.io.request_schema)

    def check(self) -> None:
        if "http" not in self._manifest.required_imports:
            self._note(("template",), "the section template needs the import http.", "Add http to required_imports.")
        if self._manifest.io.request_schema is not None and not is_object(self._manifest.io.request_schema):
            message = "a template takes its values from an object, which io.request_schema does not ask for."
            self._note(("io", "request_schema"), message, "Add type: object.")
        for header, value in self._template.headers:
            self._header(("template", "headers", header), header, value)
        if len(self._bodies) > 1:
            names = " and ".join(body.kind.field for body in self._bodies)
            self._note(("template", self._bodies[1].kind.field), f"template has {names}.", "Keep one.")
        for body in self._bodies:
            self._body(("template", body.kind.field), body)
        if self._template.url_template:
            self._url(("template", "url_template"))

    def _note(self, path: Path, message: str, mend: str) -> None:
        self._report.add(self._tree.line_at(path), dotted(path), message, mend)

    def _header(self, path: Path, header: str, value: str) -> None:
        if header.lower() in CREDENTIAL_HEADERS:
            message = f"the header {header} holds credentials, which a template would show."
            self._note(path, message, "Declare a secret with inject.")
        elif is_framing_header(header):
            self._note(path, f"the header {header} is the gateway's own.", "Remove it.")
        kind = next((body.kind for body in self._bodies), None)
        if header.lower() == "content-type" and kind is not None and not kind.fits(value):
            made = f"template.{kind.field} makes {kind.says}"
            mend = f"Write {kind.content_type}, or remove the header."
            self._note(path, f"{dotted(path)} = {value}: {made}, which the upstream would misread.", mend)
        adds_secrets = any(secret.way is not None for secret in self._manifest.secrets)
        if header.lower() == "accept-encoding" and adds_secrets:
            message = f"{dotted(path)} = {value}: an answer that is encoded can't be searched for secrets."
            self._note(path, message, "Remove the header.")
        for slot in slots(compiled(value)):
            if self._is_declared(path, slot):
                self._scalar(path, slot)

    def _body(self, path: Path, body: CompiledBody) -> None:
        node = self._tree.at(path)
        if node is not None:
            self._quotes(path, node)
        for slot in _unique(slots(body.value)):
            self._is_declared(path, slot)
        for text in texts(body.value):
            for slot in slots(text):
                self._scalar(path, slot)
        for name in sorted(set(names_in_keys(getattr(self._template, body.kind.field))) & self._known.keys()):
            message = f"{dotted(path)} holds {{{name}}} in the name of a member, where nothing is put in its place."
            self._note(path, message, "Write the name itself.")
        match body.kind.field:
            case "body_form":
                for name, value in body.value.items():
                    self._field((*path, name), value)
            case "body_text":
                self._always_there(path, body.value)

    def _field(self, path: Path, value: Compiled) -> None:
        """Note a form's field that can't be written as text, or a value that never fits it."""
        for item in value if isinstance(value, list) else [value]:
            if item is None or isinstance(item, dict | list):
                self._note(path, f"{dotted(path)} must be text, a number, a flag or a list of them.", "Correct it.")
            schema = self._known.get(item.name) if isinstance(item, Slot) else None
            if schema is not None and not may_be_scalar(schema) and not may_be_list(schema):
                self._note(path, f"{{{item.written}}} {_NO_LIST}.", "Use another property.")

    def _always_there(self, path: Path, value: Compiled) -> None:
        for slot in _unique(slots(value)):
            if slot.name in self._known and slot.name not in self._required:
                message = f"{{{slot.written}}} stands in {dotted(path)}, but io.request_schema does not require it."
                self._note(path, message, "Add it to `required`.")
            if isinstance(value, Slot):
                self._scalar(path, slot)

    def _url(self, path: Path) -> None:
        try:
            url = UrlTemplate(self._template.url_template)
        except TemplateRefused as error:
            self._note(path, f"template.url_template: {error}.", error.mend)
            return
        variables = [variable for one in url.expressions for variable in one.variables]
        if url.host_variable and self._is_declared(path, Slot(url.host_variable, url.host_variable)):
            self._scalar(path, Slot(url.host_variable, url.host_variable))
        for variable in dict.fromkeys(variables):
            if self._is_declared(path, Slot(variable.name, variable.written)):
                self._variable(path, variable)
        for name in dict.fromkeys(url.needed):
            if name in self._known and name not in self._required:
                message = f"{{{name}}} stands in the host or path, but io.request_schema does not require it."
                self._note(path, message, "Add it to `required`, or write it as {/name} or {?name}.")

    def _variable(self, path: Path, variable: Variable) -> None:
        schema = self._known[variable.name]
        if not (may_be_scalar(schema) or may_be_list(schema) or may_be_flat_object(schema)):
            self._note(path, f"{{{variable.written}}} {_NO_LIST}.", "Use another property.")
        elif variable.is_exploded and may_be_open_object(schema):
            # SECURITY: the names of its members would be parameters that the template does not name.
            message = (
                f"{{{variable.written}*}} may be an object with any names, which io.request_schema does not refuse."
            )
            self._note(path, message, "Give the property a type; for an object, additionalProperties: false.")

    def _quotes(self, path: Path, node: Node) -> None:
        """Note a placeholder without quotes: it is a mapping to YAML, and would be sent as one."""
        if node.is_bare:
            message = f"{dotted(path)} holds braces without quotes, which YAML takes for a mapping with an empty value."
            self._note(path, message, 'Quote it, as "{name}"; for an empty value write null.')
        elif isinstance(node.value, dict):
            for name, member in node.value.items():
                self._quotes((*path, name), member)
        elif isinstance(node.value, list):
            for index, item in enumerate(node.value):
                self._quotes((*path, index), item)

    def _is_declared(self, path: Path, slot: Slot) -> bool:
        if slot.name in self._known:
            return True
        message = f"{dotted(path)} uses {{{slot.written}}}, which io.request_schema does not declare."
        literal = (
            "" if path[-1] == "url_template" else f" Write {{{{{slot.written}}}}} for the text {{{slot.written}}}."
        )
        mend = did_you_mean(slot.name, self._known) if self._known else "Add it to io.request_schema.properties."
        self._note(path, message, mend + literal)
        return False

    def _scalar(self, path: Path, slot: Slot) -> None:
        if slot.name in self._known and not may_be_scalar(self._known[slot.name]):
            self._note(path, f"{{{slot.written}}} {_NO_TEXT}.", "Use another property.")


def _unique(found: list[Slot]) -> list[Slot]:
    return sorted(set(found), key=lambda slot: slot.name)
