"""Terminal output: tables, notes and progress bars."""
