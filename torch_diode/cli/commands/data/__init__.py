"""Commands that read, convert and show datasets and tables."""
