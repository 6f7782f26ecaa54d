"""gatectl completion: what a shell needs to complete gatectl's words."""

import click
from click.shell_completion import get_completion_class

from gateway_client.cli.desk import Command, Group

INTO = {
    "bash": 'eval "$(gatectl completion bash)" in ~/.bashrc',
    "zsh": 'eval "$(gatectl completion zsh)" in ~/.zshrc, behind compinit',
    "fish": "gatectl completion fish > ~/.config/fish/completions/gatectl.fish",
}


def add_to(cli: Group) -> None:
    """Hang the command into the tree."""
    cli.add_command(completion)


@click.command(cls=Command, epilog=" · ".join(INTO.values()))
@click.argument("shell", type=click.Choice(list(INTO)))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the completion of a SHELL."""
    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(context.find_root().command, {}, "gatectl", "_GATECTL_COMPLETE").source())
