from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer
from typer.testing import CliRunner

from torch_diode.cli.options.groups import expand_options


@dataclass(frozen=True)
class Both:
    """Options two commands share."""

    name: Annotated[str, typer.Option(help="Whose.")]
    count: Annotated[int, typer.Option(help="How many.")] = 2


@expand_options
def command(
    context: typer.Context,
    both: Both,
    last: Annotated[bool, typer.Option("--last", help="Of them.")] = False,
) -> None:
    """Say what was given."""
    typer.echo(f"{context.info_name} {both} {last}")


def run(*arguments: str) -> str:
    app = typer.Typer()
    app.command()(command)
    ended = CliRunner().invoke(app, arguments)
    return ended.output


def test_fields_are_options_and_come_back_as_one():
    assert "Both(name='a', count=3) True" in run("--name", "a", "--count", "3", "--last")


def test_what_has_a_default_may_be_left_out_and_what_has_none_may_not():
    assert "Both(name='a', count=2) False" in run("--name", "a")
    assert "--name" in run("--count", "3")


def test_the_help_names_every_option():
    shown = run("--help")
    assert all(text in shown for text in ("How many.", "Whose.", "Of them.", "Say what was given"))


def test_a_command_can_call_another(capsys):
    context = typer.Context(typer.main.get_command(_app()), info_name="other")
    command(context=context, name="b")
    assert "other Both(name='b', count=2) False" in capsys.readouterr().out


def _app() -> typer.Typer:
    app = typer.Typer()
    app.command()(command)
    return app
