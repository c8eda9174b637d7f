"""`torch-diode completion`: the script with which a shell completes commands and options."""

from __future__ import annotations

import typer
from typer.completion import get_completion_script  # type: ignore[attr-defined]

from torch_diode.cli.options.parameters import complete
from torch_diode.types import validation

SHELLS = ("bash", "zsh", "fish")
VARIABLE = "_TORCH_DIODE_COMPLETE"
"""Environment variable with which the script asks the program for completions."""


def completion(
    shell: str = typer.Argument(..., help="bash, zsh or fish.", autocompletion=complete(SHELLS)),
) -> None:
    """Print a completion script for your shell.

    Example: torch-diode completion bash > ~/.local/share/bash-completion/completions/torch-diode

    \b
    For this shell alone:   source <(torch-diode completion bash)
    zsh, in ~/.zshrc:       source <(torch-diode completion zsh)
    fish:   torch-diode completion fish > ~/.config/fish/completions/torch-diode.fish
    """
    validation.one_of("completion", "shell", shell, SHELLS)
    typer.echo(get_completion_script(prog_name="torch-diode", complete_var=VARIABLE, shell=shell))
