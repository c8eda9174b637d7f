"""Collection on several machines through Ray."""
