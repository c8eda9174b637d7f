"""One function per command: collect, train, validate and the rest of the workflow."""
