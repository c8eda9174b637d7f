"""Tuning: a program's own problems, measured on this machine, kept and used from then on."""
