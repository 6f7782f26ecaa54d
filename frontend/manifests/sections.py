"""The sections of a manifest: their fields, forms, bounds and defaults (docs/decisions/policy.md, "Manifests").

Each function reads one section and notes what does not hold by itself; what must hold between sections is in
frontend/manifests/coherence.py.
"""

from frontend.files.problems import Report, shown
from frontend.manifests.domains import InvalidDomain, normal_rule
from frontend.manifests.fields import Form, Section, TextRule
from frontend.manifests.manifest import FILES, EgressRules, Files, Io, RequestTemplate
from frontend.manifests.secret_ways import HEADER_NAME, way_of
from ipc.limits import MAX_ACTION_FILE_BYTES, MAX_CALL_SECONDS
from ipc.plan import MAX_FILES, MAX_TOTAL_BYTES, CallLimits, SecretUse
from ipc.texts.paths import InvalidPath, check_path, check_pattern

MAX_REQUEST_BYTES = 1_048_576
"""The transport's own limit (docs/contract.md, "Limits")."""

IDENTIFIER = TextRule(
    r"[A-Za-z0-9][A-Za-z0-9._-]*",
    "letters, digits, `.`, `_` and `-`, beginning with a letter or digit, at most 256",
    256,
)
VERSION = TextRule(
    r"(?:0|[1-9]\d*)\.(?:0|[1-9]\d*)\.(?:0|[1-9]\d*)(?:-[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?(?:\+[0-9A-Za-z.-]+)?",
    "a semantic version such as 1.0.0", 64,
)  # fmt: skip
DESCRIPTION = TextRule(r"[^\x00-\x08\x0b-\x1f\x7f-\x9f]*", "text without control characters, at most 2000", 2000)
TAG = TextRule(r"[A-Za-z0-9][A-Za-z0-9._:-]*", "letters, digits, `.`, `_`, `:` and `-`, at most 64", 64)
MODULE = TextRule(
    r"sha256:[0-9a-f]{64}|builtin:[a-z][a-z0-9_]{0,62}", "sha256: and 64 lower-case hex digits, or builtin:NAME", 71
)
SCOPE = TextRule(r"(?=.*:)[a-z0-9:_-]{4,64}", "4 to 64 of a-z, 0-9, `:`, `_`, `-`, with a colon, as in tools:call", 64)
SIDE_EFFECT = TextRule(r"[a-z][a-z0-9_]*(?:[.:-][a-z0-9_]+)*", "lower case words such as http_write, at most 64", 64)
RISK_LEVELS = ("low", "medium", "high", "critical")
PROFILES = ("none", "direct_allowlist", "proxy_allowlist")
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
OPERATIONS = ("read", "write", "append", "list", "stat", "delete")
POINTER = TextRule(r"(?:/(?:[^~/]|~[01])+)+", "a JSON pointer such as /path", 256)

SCHEMA_FORM: Form = {"$ref": "https://json-schema.org/draft/2020-12/schema", "type": "object"}

_ANY = TextRule(r".*", "text", 4096)
_ROOT = TextRule(
    rf"{FILES}(?:/.*)?",
    f"`{FILES}`, or a folder in it such as {FILES}/reports",
    4096,
    f"Move the folder into the one that files_dir names (by default state_dir/{FILES}).",
)
_HEADER_VALUE = TextRule(r"[!-~](?:[ -~]*[!-~])?", "printable ASCII, without line breaks, at most 1024", 1024)
_BODY_TEXT = TextRule(r".*", "text, at most 65536 characters", 65_536)
_FIELD: Form = {"type": ["string", "number", "boolean"]}
_FORM: Form = {"type": "object", "additionalProperties": {"anyOf": [_FIELD, {"type": "array", "items": _FIELD}]}}
_URL = TextRule(r"[!-~]+", "an http:// or https:// address in ASCII, at most 4096 characters", 4096)


def limits(top: Section) -> CallLimits:
    """Section `resource_limits`. Zero means zero only for I/O calls."""
    section = top.section("resource_limits")
    if section is None:
        return CallLimits()
    limits = CallLimits(
        fuel=section.integer("fuel", 10_000_000, 1, 10**15),
        memory_mb=section.integer("memory_mb", 64, 1, 1024),
        timeout_seconds=section.positive("timeout_seconds", 30.0, MAX_CALL_SECONDS),
        max_io_calls=section.integer("max_io_calls", 10, 0, 10_000),
    )
    section.refuse_unknown()
    return limits


def io(top: Section) -> Io:
    """Section `io`."""
    section = top.section("io")
    if section is None:
        return Io()
    io = Io(
        request_schema=section.mapping("request_schema", SCHEMA_FORM),
        response_schema=section.mapping("response_schema", SCHEMA_FORM),
        max_request_bytes=section.integer("max_request_bytes", 65_536, 1, MAX_REQUEST_BYTES),
        max_response_bytes=section.integer("max_response_bytes", 1_048_576, 1, 8 * 1_048_576),
    )
    section.refuse_unknown()
    return io


def egress(top: Section) -> EgressRules:
    """Section `egress`."""
    section = top.section("egress")
    if section is None:
        return EgressRules()
    rules = EgressRules(
        profile=section.choice("profile", PROFILES, "none"),
        allowed_domains=_domains(section, "allowed_domains"),
        allowed_methods=section.choices("allowed_methods", METHODS),
    )
    section.refuse_unknown()
    return rules


def secrets(top: Section) -> tuple[SecretUse, ...]:
    """Section `secrets`: names and how the host adds them, never values."""
    uses: list[SecretUse] = []
    for section in top.sections("secrets"):
        inject = section.section("inject")
        use = SecretUse(
            name=section.text("name", IDENTIFIER),
            required=section.flag("required", True),
            way=way_of(inject) if inject else None,
            domains=_domains(section, "domains"),
        )
        section.refuse_unknown()
        if use.name and any(use.name == other.name for other in uses):
            top.report.add(section.line, "secrets", f"the secret {use.name} is declared twice.", "Keep one.")
        uses.append(use)
    return tuple(uses)


def template(top: Section) -> RequestTemplate | None:
    """Section `template`."""
    section = top.section("template")
    if section is None:
        return None
    headers = section.section("headers")
    template = RequestTemplate(
        method=section.choice("method", METHODS),
        url_template=section.text("url_template", _URL),
        headers=_headers(headers) if headers else (),
        body_template=section.plain("body_template"),
        body_form=section.mapping("body_form", _FORM),
        body_text=section.text("body_text", _BODY_TEXT, "") or None,
    )
    section.refuse_unknown()
    return template


def files(top: Section) -> Files | None:
    """Section `fs`."""
    section = top.section("fs")
    if section is None:
        return None
    operations = section.choices("allowed_operations", OPERATIONS)
    operation = section.choice("operation", OPERATIONS, "") or (operations[0] if len(operations) == 1 else "")
    if not operation:
        section.require("operation", f"one of {', '.join(OPERATIONS)}")
    files = Files(
        root=section.text("root", _ROOT, FILES),
        operation=operation,
        path_pointer=section.text("path_pointer", POINTER, "/path"),
        allowed_operations=operations,
        allowed_paths=section.texts("allowed_paths", _ANY),
        denied_paths=section.texts("denied_paths", _ANY),
        max_file_bytes=section.integer("max_file_bytes", 1_048_576, 1, MAX_ACTION_FILE_BYTES),
        max_total_bytes=section.integer("max_total_bytes", MAX_TOTAL_BYTES, 1, 1 << 50),
        max_files=section.integer("max_files", MAX_FILES, 1, 10_000_000),
    )
    _check_paths(section, files)
    section.refuse_unknown()
    return files


def _headers(section: Section) -> tuple[tuple[str, str], ...]:
    headers: dict[str, str] = {}
    seen: set[str] = set()
    for name in section.names(HEADER_NAME):
        if name.lower() in seen:
            section.report.add(
                section.line_of(name), section.field(name), f"the header {name} stands here twice.", "Keep one."
            )
        seen.add(name.lower())
        headers[name] = section.text(name, _HEADER_VALUE)
    return tuple(headers.items())


def _domains(section: Section, field: str) -> tuple[str, ...]:
    """A list of names that are compared as they stand here."""
    names = section.texts(field, _ANY)
    for name in names:
        _check_domain(section, field, name)
    return names


def _check_domain(section: Section, field: str, name: str) -> None:
    where = section.line_of(field), section.field(field)
    try:
        normal = normal_rule(name)
    except InvalidDomain as error:
        section.report.add(*where, f"{shown(name)} {error}.", "Write a name such as api.example.com or *.example.com.")
        return
    if normal != name:
        section.report.add(*where, f"{shown(name)} is not in its normal form.", f"Write {normal}.")


def _check_paths(section: Section, files: Files) -> None:
    for name, texts in (("allowed_paths", files.allowed_paths), ("denied_paths", files.denied_paths)):
        for text in texts:
            try:
                check_pattern(text)
            except InvalidPath as error:
                _path_problem(section.report, section, name, text, error.rule)
    try:
        check_path(files.root)
    except InvalidPath as error:
        _path_problem(section.report, section, "root", files.root, error.rule)


def _path_problem(report: Report, section: Section, name: str, text: str, rule: str) -> None:
    message = rule.replace("_", " ")
    mend = "Write it relative to the root, without `.`, `..` and empty segments."
    report.wrong(section.line_of(name), section.field(name), text, f"is no such path ({message})", mend)
