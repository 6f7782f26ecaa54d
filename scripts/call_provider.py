"""Calls one provider component without a gateway: `python -m scripts.call_provider FILE.wasm INPUT`.

For authors of providers. Prints what the component imports, what it answers, the fuel it took, and what it asked
its host for: files live in memory, every HTTP request gets the same answer. Needs the development dependencies.
"""

import argparse
import sys
import time
from pathlib import Path

from tests.support.provider_host import Host, Providers


def main() -> int:
    """0 for a result, 1 for a provider-error or a trap."""
    parser = argparse.ArgumentParser(prog="python -m scripts.call_provider", description="Call a provider component.")
    parser.add_argument("component", type=Path)
    parser.add_argument("input", help="JSON text, or - to read it from standard input")
    parser.add_argument("--fuel", type=int, default=10_000_000)
    parser.add_argument("--memory-mb", type=int, default=64)
    parser.add_argument("--status", type=int, default=200, help="status of every HTTP answer")
    parser.add_argument("--body", default="{}", help="body of every HTTP answer")
    options = parser.parse_args()
    text = sys.stdin.read() if options.input == "-" else options.input
    providers, host = Providers(), Host(status=options.status, body=options.body)
    begin = time.perf_counter()
    imports = providers.imports(options.component)
    print(f"imports   {', '.join(sorted(imports)) or 'nothing'}")
    print(f"compiled  in {(time.perf_counter() - begin) * 1000:.0f} ms")
    begin = time.perf_counter()
    try:
        outcome = providers.call(options.component, text, host, fuel=options.fuel, memory_mb=options.memory_mb)
    except Exception as error:
        print(f"trap      {error}")
        return 1
    print(f"called    in {(time.perf_counter() - begin) * 1000:.2f} ms with {outcome.fuel} of {options.fuel} fuel")
    for sent in host.sent:
        print(f"sent      {sent.method} {sent.url} {dict(sent.headers)} {sent.body!r}")
    for path, content in host.files.items():
        print(f"file      {path}: {content!r}")
    for level, line in host.logged:
        print(f"log       {level}: {line}")
    if outcome.failure is not None:
        print(f"error     {outcome.failure}")
        return 1
    print(f"result    {outcome.text}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
