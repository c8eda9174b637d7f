"""The commands, one file each, grouped by what a user wants to do."""
