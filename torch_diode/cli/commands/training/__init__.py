"""Commands that train and validate models."""
