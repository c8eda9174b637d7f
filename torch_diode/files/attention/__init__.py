"""Timings of flex attention: PyTorch's logs, and files of our own."""
