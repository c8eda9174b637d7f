"""How what torch-diode talks about is kept on disk.

Datasets in Parquet, JSON and MessagePack, tables, shape sets and solutions in JSON. Reading never
runs code, writing never leaves half a file, and every fault names the file.
"""
