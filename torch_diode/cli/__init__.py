"""The command line: one file a command, each thin: parse, call, print."""

from torch_diode.cli.app import main

__all__ = ["main"]
