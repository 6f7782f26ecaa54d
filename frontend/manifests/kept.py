"""Sections `evidence` and `summary`: the values of a request that evidence keeps, and the line that tells a call."""

from typing import Protocol

from frontend.manifests.fields import Section, TextRule
from frontend.manifests.manifest import Manifest
from frontend.manifests.sections import POINTER
from frontend.manifests.yamltree import Path
from frontend.schemas.pointers import can_have
from ipc.evidence.kept_values import MAX_KEPT, MAX_SUMMARY, PLACEHOLDER, KeptRules

_SUMMARY = TextRule(
    r"[^\x00-\x1f\x7f-\x9f]+", f"text without control characters, at most {MAX_SUMMARY} characters", MAX_SUMMARY
)


class _Note(Protocol):
    def __call__(self, path: Path, message: str, mend: str) -> None: ...


def kept_rules(top: Section) -> KeptRules | None:
    """Both sections; None if the manifest has neither."""
    section, summary = top.section("evidence"), top.text("summary", _SUMMARY, "") or None
    if section is None:
        return None if summary is None else KeptRules(summary=summary)
    rules = KeptRules(
        keep=section.texts("keep", POINTER, most=MAX_KEPT), mask=section.texts("mask", POINTER, most=MAX_KEPT),
        summary=summary,
    )  # fmt: skip
    section.refuse_unknown()
    return rules


def check_kept(manifest: Manifest, note: _Note) -> None:
    """Note pointers that no request can have, values that are named twice, and a summary of what is not kept."""
    rules = manifest.kept
    if rules is None:
        return
    if len(rules.keep) + len(rules.mask) > MAX_KEPT:
        note(("evidence",), f"evidence names more than {MAX_KEPT} values.", "Keep fewer.")
    for name, pointers in (("keep", rules.keep), ("mask", rules.mask)):
        for at, pointer in enumerate(pointers):
            path: Path = ("evidence", name, at)
            if pointer in (rules.keep + rules.mask)[: at + (len(rules.keep) if name == "mask" else 0)]:
                note(path, f"{pointer} is named twice.", "Name it once, in keep or in mask.")
            elif not can_have(manifest.io.request_schema, pointer):
                note(path, f"no request can have a text, number or flag at {pointer}.", "Name one of request_schema.")
    for found in PLACEHOLDER.findall(rules.summary or ""):
        if "/" + found not in rules.keep:
            note(("summary",), f"{{{found}}} is not kept.", f"Add /{found} to evidence.keep, or remove it.")
    if set(PLACEHOLDER.sub("", rules.summary or "")) & set("{}"):
        note(("summary",), "a brace stands alone.", "Write a placeholder such as {amount_cents}.")
