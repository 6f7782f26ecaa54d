"""Sinks of principals: what their actions' manifests declare as side effects, and nothing else.

A file of the policy may list sinks, since a grant writes them there for people to read. SECURITY: what it lists is
never believed: an entry that was written by hand, or before a manifest changed, must not allow more than its actions
do. Computed anew at every load and every change, by the code that knows the manifests.
"""

import json
from collections.abc import Callable, Iterable

import msgspec

from frontend.policy.acl import PolicyFiles
from frontend.policy.engine import PolicySources

Sinks = Callable[[Iterable[str]], frozenset[str]]
"""The sinks that these actions declare; of one that is not registered, none."""


def believed(files: PolicyFiles, sinks_of: Sinks) -> PolicyFiles:
    """The same files, as they lie on the disk, and their data with the sinks of the actions."""
    acl = {
        name: msgspec.structs.replace(entry, sinks=tuple(sorted(sinks_of(entry.actions))))
        for name, entry in files.data.acl.items()
    }
    return msgspec.structs.replace(files, data=msgspec.structs.replace(files.data, acl=acl))


def for_engine(files: PolicyFiles) -> PolicySources:
    """The sources for an engine, out of `believed` files: data.json has those sinks in the place of its own."""
    document = json.loads(files.sources.data)
    for name, entry in files.data.acl.items():
        document["acl"][name]["sinks"] = list(entry.sinks)
    text = json.dumps(document, ensure_ascii=False)
    return msgspec.structs.replace(files.sources, data=text, origin=files.sources.digest)
