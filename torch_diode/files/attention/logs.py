"""PyTorch's AutoHeuristic logs of flex attention's forward kernel, as a dataset."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pyarrow as pa

from torch_diode.files.autoheuristic import (
    ATTENTION,
    Log,
    config_fields,
    merge_repeats,
    read_log,
    repeated,
)
from torch_diode.files.file_errors import naming_file
from torch_diode.types.attention.dataset import CONFIG_COLUMNS, AttentionDataset
from torch_diode.types.attention.shape import LAYOUTS

_NUMBERS = ("b", "h", "m", "n", "q_stride_1", "q_stride_2")
_SCORE = {"score_ops": "subgraph_num_nodes", "score_reads": "subgraph_num_args_used"}
_KEYS = "kv_seq_length"
"""The number of keys, which some logs leave out: there it is the number of queries."""


def read_attention_log(path: str | os.PathLike[str]) -> AttentionDataset:
    """The timings of a log of flex attention. A time of `inf` did not run; of timings made
    repeatedly, the median is kept."""
    with naming_file(path):
        log = read_log(path, ATTENTION)
        return AttentionDataset(merge_repeats(_attentions(log)), log.provenance)


def _attentions(log: Log) -> pa.Table:
    """A dataset's columns, one row per line."""
    log.check_features(ATTENTION, (*_NUMBERS, *_SCORE.values(), "dtype"))
    batch, heads, queries, head_dim, head_step, row_step = (log.numbers(n) for n in _NUMBERS)
    keys = log.numbers(_KEYS) if _KEYS in log.table.column_names else queries
    layout = np.where((heads > 1) & (head_step < row_step), LAYOUTS[1], LAYOUTS[0])
    columns: dict[str, Any] = {
        "hardware": repeated(log.hardware, len(batch)),
        "B": batch,
        "H": heads,
        "M": queries,
        "N": keys,
        "D": head_dim,
        "dtype": pa.array(log.texts("dtype")).dictionary_encode(),
        "kind": repeated("forward", len(batch)),
        "layout": pa.array(layout).dictionary_encode(),
        **{name: log.numbers(feature) for name, feature in _SCORE.items()},
        **_configs(log.table.column("choice").combine_chunks()),
        "time_us": log.numbers("feedback") * 1e3,
    }
    return pa.table(columns).combine_chunks()


def _configs(choices: pa.DictionaryArray) -> dict[str, Any]:
    fields = [config_fields(choice) for choice in choices.dictionary.to_pylist()]
    codes = choices.indices.to_numpy()
    names = [column.name for column in CONFIG_COLUMNS]
    return {name: np.array([each[name] for each in fields])[codes] for name in names}
