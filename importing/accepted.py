"""The check that a manifest's text is one that the gateway takes, before it is written."""

from typing import Any

from frontend.files.problems import Report
from frontend.manifests.reading import manifest_of, read_bytes
from importing.refusal import LeftOut
from importing.words import one_line


def check_manifest(text: str, fields: dict[str, Any]) -> None:
    """Raises LeftOut if the gateway would not take the text, or would read other values in it."""
    report = Report("manifest")
    try:
        tree = read_bytes(text.encode(), report)
    except UnicodeEncodeError:
        raise LeftOut("its texts are no Unicode") from None
    if tree is not None:
        manifest_of(tree, report, has_proxy=False)
    if report.problems or tree is None:
        raise LeftOut(f"the gateway would not take it: {one_line(report.problems[0].message, 200)}")
    if tree.plain() != fields:
        raise LeftOut("its values can't be written as YAML")
