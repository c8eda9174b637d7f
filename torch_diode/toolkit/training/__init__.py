"""Training runs: data in, model, card and curves out."""
