"""Serialization of the domain types.

Datasets in Parquet, JSON and MessagePack; tables, shape sets and solutions in JSON. Reading never
runs code, writing never leaves half a file, and every error names the file.
"""
