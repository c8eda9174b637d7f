"""`python -m torch_diode`: the command line, under either distribution."""

from torch_diode.cli import main

main()
