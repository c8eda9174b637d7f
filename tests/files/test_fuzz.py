"""Every damaged or hostile file is refused with one sentence that names it, or read as something
valid; anything else is a fault: another exception, a signal, a file that takes forever or fills the
memory, a damaged Parquet file that reads as other data.
"""

import os
import random
from collections import Counter

import pytest

from tests import samples
from tests.files.fuzz import FORMATS, mutated, outcome_in, sources, worker
from torch_diode.collection.workers.pool import WorkerPool

FILES = int(os.environ.get("TORCH_DIODE_FUZZ_FILES", "300"))
"""Of each format; set the variable for a longer run. Files that ended badly are kept."""


@pytest.mark.parametrize("form", FORMATS)
def test_a_damaged_or_hostile_file_is_refused_in_one_sentence_or_is_valid(
    form, tmp_path, monkeypatch
):
    monkeypatch.setenv("ARROW_DEFAULT_MEMORY_POOL", "system")
    chance, whole = random.Random(f"7 {form}"), samples.dataset().digest
    originals = sources(tmp_path)[form]
    outcomes, faults = Counter(), []
    with WorkerPool([worker], fresh=True) as pool:
        for number in range(FILES):
            data, checked = mutated(form, chance, originals)
            ending = form if form in ("parquet", "msgpack") else "json"
            file = tmp_path / f"{form}-{number}.{ending}"
            file.write_bytes(data)
            outcome, detail = outcome_in(pool, form, file)
            if checked and outcome == "valid" and detail != whole:
                outcome = "altered"
            outcomes[outcome] += 1
            if outcome in ("refused", "valid"):
                file.unlink()
            else:
                faults.append(f"{outcome}: {file}: {detail}")
    assert not faults, "\n".join(faults[:5])
    assert outcomes["refused"] > FILES / 2
