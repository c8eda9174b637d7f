"""`torch-diode completion`: words for the shell to complete, without asking the program each time.

The scripts are written from the commands themselves and stand alone, so that a press of TAB does
not wait for Python.
"""

from __future__ import annotations

import functools
import sys
from typing import Annotated, Any

import typer

from torch_diode.model.shipped import SHIPPED
from torch_diode.types import validation
from torch_diode.types.problem import LAYOUTS, OPS

SHELLS = ("bash", "zsh", "fish")


def completion(
    context: typer.Context,
    shell: Annotated[str, typer.Argument(help="bash, zsh or fish.")],
) -> None:
    """Print a script that has the shell complete commands, options and their values.

    Example: torch-diode completion bash > ~/.local/share/bash-completion/completions/torch-diode

    \b
    For this shell alone:   source <(torch-diode completion bash)
    zsh, in ~/.zshrc:       source <(torch-diode completion zsh)
    fish:   torch-diode completion fish > ~/.config/fish/completions/torch-diode.fish
    """
    validation.one_of("completion", "shell", shell, SHELLS)
    root = context.find_root().command
    tree = _tree(root)
    sys.stdout.write({"bash": _bash, "zsh": _zsh, "fish": _fish}[shell](tree))


def _tree(command: Any, name: str = "") -> dict[str, dict[str, str]]:
    """For the program ("") and each command (`train`, `table build`): its words, options and
    commands within, each with its help."""
    words = {
        option: (parameter.help or "")
        for parameter in command.params
        for option in (*parameter.opts, *parameter.secondary_opts)
        if option.startswith("--")
    }
    words["--help"] = "Show the help."
    found = {name: words}
    for child, inner in getattr(command, "commands", {}).items():
        words[child] = inner.get_short_help_str(80)
        found |= _tree(inner, f"{name} {child}".strip())
    return found


@functools.cache
def _choices() -> dict[str, tuple[str, ...]]:
    """What can follow an option, where that is a few words; after any other come files."""
    from torch_diode.candidates.gpu.eligibility import TRITON_DTYPES
    from torch_diode.cli.options.collecting import METHODS, SEARCH_MODES, SEARCH_SPACES
    from torch_diode.cli.options.training import MODEL_TYPES
    from torch_diode.files.datasets import FORMS
    from torch_diode.hardware import known_names
    from torch_diode.model.evaluation.holdout import SCORED
    from torch_diode.types.dataset import DUPLICATES

    return {
        "--format": FORMS,
        "--file-extensions": FORMS,
        "--search-space": SEARCH_SPACES,
        "--search-mode": SEARCH_MODES,
        "--method": METHODS,
        "--model-type": MODEL_TYPES,
        "--score": SCORED,
        "--duplicates": DUPLICATES,
        "--op": OPS,
        "--op-name": OPS,
        "--operations": OPS,
        "--dtype": TRITON_DTYPES,
        "--dtypes": TRITON_DTYPES,
        "--layout": LAYOUTS,
        "--device": ("cpu", "cuda"),
        "--init-from": (SHIPPED,),
        "--hardware": known_names(),
        "--hardware-name": known_names(),
    }


def _words(option: str) -> tuple[str, ...]:
    return _choices().get(option, ())


def _valued(tree: dict[str, dict[str, str]]) -> list[str]:
    """The options, of any command, that are followed by one of a few words."""
    options = {word for words in tree.values() for word in words if word.startswith("--")}
    return sorted(option for option in options if _words(option))


def _bash(tree: dict[str, dict[str, str]]) -> str:
    values = "\n".join(
        f'    {option}) COMPREPLY=( $(compgen -W "{" ".join(_words(option))}" -- "$word") ); '
        "return ;;"
        for option in _valued(tree)
    )
    lists = "\n".join(f'    "{name}") words="{" ".join(words)}" ;;' for name, words in tree.items())
    commands = " | ".join(f'"{name}"' for name in tree if name)
    return f"""# Completion of torch-diode in bash.
_torch_diode() {{
  local word="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}"
  local command="" words="" i
  for (( i = 1; i < COMP_CWORD; i++ )); do
    case "${{command:+$command }}${{COMP_WORDS[i]}}" in
      {commands}) command="${{command:+$command }}${{COMP_WORDS[i]}}" ;;
    esac
  done
  case "$before" in
{values}
  esac
  case "$command" in
{lists}
  esac
  if [[ "$word" == -* || -z "$command" || "$command" == table ]]; then
    COMPREPLY=( $(compgen -W "$words" -- "$word") )
  else
    COMPREPLY=( $(compgen -f -- "$word") )
  fi
}}
complete -o filenames -o bashdefault -F _torch_diode torch-diode
"""


def _zsh(tree: dict[str, dict[str, str]]) -> str:
    return "autoload -U +X compinit && compinit\nautoload -U +X bashcompinit && bashcompinit\n" + (
        _bash(tree).replace("in bash", "in zsh, which runs bash's")
    )


def _fish(tree: dict[str, dict[str, str]]) -> str:
    lines = ["# Completion of torch-diode in fish."]
    for name, words in tree.items():
        given = " ".join(f"__fish_seen_subcommand_from {part};" for part in name.split())
        condition = given.replace("; ", "; and ").rstrip(";") or "__fish_use_subcommand"
        for word, help_text in words.items():
            told = help_text.replace("\\", "").replace("'", "")
            start = f"complete -c torch-diode -n '{condition}' -d '{told}'"
            if not word.startswith("--"):
                lines.append(f"{start} -f -a {word}")
            elif _words(word):
                lines.append(f"{start} -l {word[2:]} -x -a '{' '.join(_words(word))}'")
            else:
                lines.append(f"{start} -l {word[2:]}")
    return "\n".join(lines) + "\n"
