"""Help texts: commands in groups with whole sentences, and rare options behind `--help-all`."""

from __future__ import annotations

from textwrap import wrap
from typing import Any

from typer.core import TyperCommand, TyperGroup

WIDTH = 100
MORE = "More options"
"""The panel of options that `--help` only names."""
HELP_ALL = "--help-all"
MOST_DESCRIBED = 18
"""Options that `--help` describes at most, where some are only named."""


class GroupedCommands(TyperGroup):
    """A program whose help lists its commands by panel, in the order they were added."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Names in the order they were added."""
        return list(self.commands)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write a section per panel, with the first sentence of each command's help."""
        panels: dict[str, list[tuple[str, str]]] = {}
        for name, command in self.commands.items():
            panel = getattr(command, "rich_help_panel", None) or "Commands"
            panels.setdefault(str(panel), []).append((name, _first_sentence(command.help or "")))
        for panel, rows in panels.items():
            with formatter.section(panel):
                formatter.write_dl(rows)


class BriefCommand(TyperCommand):
    """A command with many options: `--help` describes the usual ones and names the rest, which
    `--help-all` describes too."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Show everything where `--help-all` is among the arguments."""
        if HELP_ALL in args:
            ctx.meta[HELP_ALL] = True
            args = ["--help"]
        return super().parse_args(ctx, args)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the options; those of the panel `MORE` only by name, unless all are asked for."""
        usual: list[tuple[str, str]] = []
        more: list[tuple[str, str]] = []
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                rare = getattr(parameter, "rich_help_panel", None) == MORE
                (more if rare and not ctx.meta.get(HELP_ALL) else usual).append(record)
        if more and len(usual) > MOST_DESCRIBED:  # such as those of two commands together
            *rest, own_help = usual[MOST_DESCRIBED - 1 :]
            usual, more = [*usual[: MOST_DESCRIBED - 1], own_help], [*rest, *more]
        with formatter.section("Options"):
            formatter.write_dl(usual)
        if more:
            with formatter.section(f"{MORE} ({HELP_ALL} describes them)"):
                names = ", ".join(names.split(" <")[0] for names, _ in more)
                width, indent = formatter.width, " " * formatter.current_indent
                wrapped = wrap(names, width - len(indent), break_on_hyphens=False)
                formatter.write("".join(f"{indent}{line}\n" for line in wrapped))


def _first_sentence(text: str) -> str:
    paragraph = " ".join(text.strip().split("\n\n")[0].split())
    return paragraph.partition(". ")[0].rstrip(".")
