"""From a manifest's file to a Manifest, with every problem collected.

Guarantees that any bytes give a Manifest or problems, never an exception, and that a field this gateway does not know
is refused. Never reads anything but the file it is given.
"""

import codecs
import hashlib
from pathlib import Path

from msgspec.structs import replace

from frontend.files.claimed import FileNotReadable, read_regular
from frontend.files.problems import Report
from frontend.manifests import sections
from frontend.manifests.coherence import check_coherence
from frontend.manifests.fields import Section
from frontend.manifests.imported import imported
from frontend.manifests.kept import kept_rules
from frontend.manifests.manifest import ISOLATIONS, Manifest
from frontend.manifests.mcp import mcp_section
from frontend.manifests.policy_input import MAX_POINTERS
from frontend.manifests.response import idempotency, response
from frontend.manifests.verification import verification
from frontend.manifests.yamltree import Node, read_tree
from ipc.effects import IMPORTS
from ipc.verifiers import DEFAULT_VERIFIER, VERIFIERS

MAX_FILE_BYTES = 256 * 1024


def read_file(path: Path, report: Report) -> Node | None:
    """The tree of one YAML file of at most 256 KiB, or None with the problems in `report`."""
    try:
        data = read_regular(path, MAX_FILE_BYTES + 1)
    except FileNotReadable as error:
        report.add(0, "", error.problem, error.mend)
        return None
    return read_bytes(data, report)


def read_bytes(data: bytes, report: Report) -> Node | None:
    """As read_file, from bytes."""
    if len(data) > MAX_FILE_BYTES:
        report.add(0, "", f"the file is larger than {MAX_FILE_BYTES} bytes.", "Shorten it.")
        return None
    report.digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
    data = data.removeprefix(codecs.BOM_UTF8)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        report.add(data.count(b"\n", 0, error.start) + 1, "", "this is not UTF-8 text.", "Save it as UTF-8.")
        return None
    return read_tree(text, report)


def manifest_of(tree: Node, report: Report, *, has_proxy: bool) -> Manifest | None:
    """The manifest that a tree holds, or None with the problems in `report`. `has_proxy`: egress_proxy_url is set."""
    manifest = read_fields(Section(tree, (), report))
    check_coherence(manifest, tree, report, has_proxy=has_proxy)
    return None if report.problems else manifest


def read_fields(top: Section) -> Manifest:
    """Every field of a manifest, defaults where a field is absent or wrong; problems are in the report of `top`."""
    verifier_kind = top.choice("verifier_kind", VERIFIERS, DEFAULT_VERIFIER)
    keyed = idempotency(top)
    manifest = Manifest(
        action_id=top.text("action_id", sections.IDENTIFIER),
        version=top.text("version", sections.VERSION),
        description=top.text("description", sections.DESCRIPTION, ""),
        tags=top.texts("tags", sections.TAG, most=32),
        provider_module_digest=top.text("provider_module_digest", sections.MODULE),
        required_imports=top.choices("required_imports", IMPORTS),
        required_scopes=top.texts("required_scopes", sections.SCOPE, ("tools:call",), most=32),
        risk_level=top.choice("risk_level", sections.RISK_LEVELS, "high"),
        declared_side_effects=top.texts("declared_side_effects", sections.SIDE_EFFECT, most=32),
        limits=sections.limits(top),
        io=sections.io(top),
        egress=sections.egress(top),
        secrets=sections.secrets(top),
        verifier_kind=verifier_kind,
        verification_config=verification(top, verifier_kind),
        template=sections.template(top),
        response=response(top),
        idempotency_header=keyed.header,
        keep_output=keyed.keep_output,
        files=sections.files(top),
        isolation=top.choice("isolation", ISOLATIONS, ""),
        expose_provider_error=top.flag("expose_provider_error", False),
        preview=top.flag("preview", False),
        imported=imported(top),
        file=top.report.file,
        file_digest=top.report.digest,
        module_line=top.line_of("provider_module_digest"),
        mcp=mcp_section(top),
        kept=kept_rules(top),
        policy_input=top.texts("policy_input", sections.POINTER, most=MAX_POINTERS),
    )
    top.refuse_unknown()
    if not manifest.isolation:
        return replace(manifest, isolation="shared" if manifest.may_share else "pooled")
    return manifest
