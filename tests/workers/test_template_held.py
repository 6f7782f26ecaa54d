"""Modules of held calls: the template finds them by digest once their actions and files are gone."""

from pathlib import Path

import msgspec

from ipc.messages.modules import ModuleFile
from tests.support.worker_plans import builtin, digest_of
from tests.support.worker_template import template


def test_a_held_module_whose_file_is_gone_is_mapped_from_what_was_compiled_of_it(tmp_path: Path) -> None:
    data, path = builtin("file_write") + b"\x00\x05\x04held", tmp_path / "module.wasm"
    path.write_bytes(data)
    digest = digest_of(data)
    named = ModuleFile(digest, str(path), ("fs",))
    held = msgspec.structs.replace(named, is_held=True)
    fewer_imports = msgspec.structs.replace(held, required_imports=())
    with template(tmp_path) as running:
        assert [one.verdict for one in running.load(held, named).verdicts] == ["ok", "ok"]
        path.unlink()
        loaded = running.load(held, named, fewer_imports)
        assert [one.verdict for one in loaded.verdicts] == ["ok", "missing", "missing"]
        assert loaded.generation == 1
    with template(tmp_path) as following:
        loaded = following.load(named, held)
        assert [one.verdict for one in loaded.verdicts] == ["missing", "ok"]
        assert (loaded.generation, loaded.verdicts[1].is_builtin) == (1, False)
        path.write_bytes(data + b"\x00\x02\x01x")
        assert following.load(held).verdicts[0].verdict == "mismatch"


def test_a_held_module_that_the_gateway_ships_is_found_by_its_digest(tmp_path: Path) -> None:
    digest = digest_of(builtin("echo"))
    file = ModuleFile(digest, str(tmp_path / "nowhere.wasm"), ())
    with template(tmp_path) as running:
        named, held = running.load(file, msgspec.structs.replace(file, is_held=True)).verdicts
        assert (named.verdict, named.is_builtin) == ("missing", False)
        assert (held.verdict, held.digest, held.is_builtin) == ("ok", digest, True)
