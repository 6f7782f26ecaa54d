"""Files of `gateway new provider NAME --language LANGUAGE`: the source of a provider, the interface that it is built
against, a build with pinned tools, and all that `gateway new action` gives an action.

Guarantees that no file is overwritten, and that the interface is the gateway's own, byte for byte. Runs and fetches
nothing; the build does. Until a module is built the manifest stays beside the source, so that the gateway of this
folder starts as before.
"""

import shlex
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec

from ipc.process.exits import Exit
from supervisor.commands.create.init_production import CONFIGURATION, CONTRIB
from supervisor.commands.create.new_action import PRINCIPAL, manifest_place, with_action
from supervisor.dev.private_files import write_private
from supervisor.refusal import Refused

INSTALLED = CONTRIB.parent
"""The folder that holds the gateway's packages, in a checkout and in an installation."""
TEMPLATES = CONTRIB / "templates" / "provider"
INTERFACE = INSTALLED / "workers" / "wit" / "provider.wit"
TOOLS = INSTALLED / "workers" / "providers" / "src" / "tools"
GUEST = INSTALLED / "workers" / "providers" / "src" / "guest"


class Language(msgspec.Struct, frozen=True):
    """The differences of a language: the file to read first, the limits of a call, and the gateway's files to copy."""

    source: str
    fuel: int
    memory_mb: int
    interface: str
    """Where the interface goes; a toolchain that imports all that a world names has it as a dependency of its own."""
    tools: tuple[str, ...] = ()
    guest: bool = False


LANGUAGES = {
    "zig": Language(
        "provider.zig", 1_000_000, 8, "wit/provider.wit",
        ("zig.sh", "component.mjs", "package.json", "package-lock.json", "requirements.lock"), guest=True,
    ),
    "rust": Language("src/lib.rs", 1_000_000, 8, "wit/provider.wit"),
    "python": Language("app.py", 50_000_000, 64, "wit/deps/gateway-provider/provider.wit"),
    "js": Language("provider.js", 50_000_000, 64, "wit/deps/gateway-provider/provider.wit"),
}  # fmt: skip

_LOCKS = (".lock", ".json")

_NEXT = """\
{provider}/{source} is the provider: read it, change it.
{provider}/{name}.yaml is the manifest; the first build moves it to {folder}/actions.
{folder}/policy/data.json lets {principal} call it.

make -C {quoted_provider}        # brings the pinned tools, once, and builds
gateway dev --config {quoted}
gatectl execute {name} name='ada king lovelace'          # in another terminal
"""


def new_provider(folder: Path, name: str, language: str) -> str:
    """Write everything; return what to tell. Raises Refused."""
    manifest_place(folder, name)
    provider = folder / "providers" / name
    if provider.exists():
        raise Refused(Exit.CONFIG, f"{provider.absolute()} is there already; nothing was changed. Choose another name.")

    def write() -> None:
        parent = provider.parent.absolute()
        parent.mkdir(mode=0o700, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{name}.", dir=parent) as begun:
            made = Path(begun, name)
            for place, text in files(name, language):
                file = made / place
                file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                write_private(file, text)
            made.rename(parent / name)

    with_action(folder, name, write)
    return _NEXT.format(
        folder=folder, provider=provider, name=name, source=LANGUAGES[language].source, principal=PRINCIPAL,
        quoted_provider=shlex.quote(str(provider)), quoted=shlex.quote(str(folder / CONFIGURATION)),
    )  # fmt: skip


def files(name: str, language: str) -> Iterator[tuple[Path, str]]:
    """Every file of a provider: its place in the provider's folder, and its text."""
    chosen = LANGUAGES[language]
    words = {"NAME": name, "FUEL": str(chosen.fuel), "MEMORY_MB": str(chosen.memory_mb)}
    for root in (TEMPLATES / "common", TEMPLATES / language):
        for file in sorted(path for path in root.rglob("*") if path.is_file() and path.suffix != ".pyc"):
            text = file.read_text()
            # Hashes of a lock file may hold any letters.
            yield (
                Path(_filled(str(file.relative_to(root)), words)),
                text if file.suffix in _LOCKS else _filled(text, words),
            )
    for tool in ("bring.sh", *chosen.tools):
        yield Path("tools", tool), (TOOLS / tool).read_text()
    if chosen.guest:
        for file in sorted(GUEST.glob("*.zig")):
            yield Path("guest", file.name), file.read_text()
    yield Path(chosen.interface), INTERFACE.read_text()


def _filled(text: str, words: dict[str, str]) -> str:
    for word, value in words.items():
        text = text.replace(word, value)
    return text
