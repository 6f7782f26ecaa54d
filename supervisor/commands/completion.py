"""`gateway completion`: what a shell needs to complete the words of this command, made of its own parsers."""

import argparse
from collections.abc import Iterator
from functools import partial

from ipc.process.exits import Exit
from supervisor.commands import Commands

_BASH = """_gateway() {{
  local path="" word words=""
  for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    case "$path $word" in
      {paths}) path="$path $word" ;;
    esac
  done
  case "$path" in
{cases}
  esac
  COMPREPLY=($(compgen -W "$words" -- "${{COMP_WORDS[COMP_CWORD]}}"))
}}
complete -o default -F _gateway gateway
"""
_ZSH = "autoload -U +X bashcompinit && bashcompinit\n"
_FISH = """function __gateway_is_at
  set -l path
  for word in (commandline -opc)[2..]
    contains -- (string join " " -- $path $word) {paths}; and set -a path $word
  end
  set -l joined (string join " " -- $path)
  test "$joined" = "$argv"
end
"""


def add(commands: Commands) -> None:
    """Put `completion` beside the other commands."""
    parser = commands.add_parser(
        "completion", help="print the completion of a shell",
        epilog='bash: eval "$(gateway completion bash)" in ~/.bashrc; zsh: eval "$(gateway completion zsh)" '
        "in ~/.zshrc, behind compinit; fish: gateway completion fish > ~/.config/fish/completions/gateway.fish",
    )  # fmt: skip
    parser.add_argument("shell", choices=("bash", "zsh", "fish"))
    parser.set_defaults(run=partial(_print, commands))


def _print(commands: Commands, options: argparse.Namespace) -> int:
    at = {"": [*commands.choices, "--help", "--version"]}
    for name, parser in commands.choices.items():
        at |= dict(_below(name, parser))
    print({"bash": _bash, "zsh": lambda found: _ZSH + _bash(found), "fish": _fish}[options.shell](at), end="")
    return Exit.OK


def _below(path: str, parser: argparse.ArgumentParser) -> Iterator[tuple[str, list[str]]]:
    """Each command from here on, with the words that may follow it."""
    words = [option for action in parser._actions for option in action.option_strings if option.startswith("--")]
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            words += action.choices
            for name, inner in action.choices.items():
                yield from _below(f"{path} {name}", inner)
        elif action.choices is not None and not action.option_strings:
            words += [str(one) for one in action.choices]
    yield path, words


def _bash(at: dict[str, list[str]]) -> str:
    paths = "|".join(f'" {path}"' for path in at if path)
    cases = "\n".join(f'    "{" " * bool(path)}{path}") words="{" ".join(words)}" ;;' for path, words in at.items())
    return _BASH.format(paths=paths, cases=cases)


def _fish(at: dict[str, list[str]]) -> str:
    lines = [
        f"complete -c gateway -n '__gateway_is_at {path}' -a '{' '.join(words)}'".replace("_at '", "_at'")
        for path, words in at.items()
    ]
    return _FISH.format(paths=" ".join(f"'{path}'" for path in at if path)) + "\n".join(lines) + "\n"
