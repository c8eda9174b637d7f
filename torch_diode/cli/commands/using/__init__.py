"""Commands that show and explain decisions on this machine."""
