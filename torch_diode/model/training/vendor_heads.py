"""Training of the vendor library's heads: ATen, and splits of K.

They see whole calls and no configs, so a problem with ATen alone teaches as much as any other. The
difference between sweeps of library calls only and sweeps with configs in between is learnt as an
offset and then dropped: a ranking compares with configs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import torch

from torch_diode.model.training.epoch import Row, set_rate
from torch_diode.model.training.losses import vendor_loss
from torch_diode.model.training.time_limit import NO_LIMIT, TimeLimit

if TYPE_CHECKING:
    from torch_diode.model.networks.timing_models import VendorHead
    from torch_diode.model.training.batches import LibraryCalls

_DECAY = 1e-2
_BATCH = 512
_INITIAL_SCALE = 0.3
"""Scale of the last layer's initial weights, so that training starts near the mean."""


def train_head(
    head: VendorHead,
    calls: LibraryCalls,
    epochs: int,
    rate: float,
    dropout: float,
    seed: int,
    progress: Callable[[Row], None] | None = None,
    afresh: bool = True,
    limit: TimeLimit = NO_LIMIT,
) -> None:
    """Train a head in place, afresh or from its weights. Its members learn from the same rows and
    differ by initial weights and dropout. `progress` gets each epoch as `head` of `heads`."""
    if not len(calls):
        return
    if afresh:
        head.norm.fit(torch.cat([calls.problem, calls.call], dim=1))
        with torch.no_grad():
            head.biases[-1].fill_(float(calls.target.mean()))
            head.weights[-1].mul_(_INITIAL_SCALE)
    head.trained.fill_(1)
    alone_offset = torch.nn.Parameter(torch.zeros_like(head.biases[0]))
    parameters = [*head.parameters(), alone_offset]
    optimizer = torch.optim.AdamW(parameters, rate, weight_decay=_DECAY, fused=True)
    rng = np.random.default_rng(seed)
    head.train()
    for epoch in range(epochs):
        order = torch.from_numpy(rng.permutation(len(calls))).to(calls.target.device)
        pieces = order.split(_BATCH)
        for number, piece in enumerate(pieces):
            if limit.is_over:
                break
            done = max((epoch + number / len(pieces)) / epochs, limit.spent)
            set_rate(optimizer, rate, done)
            offset = alone_offset * calls.alone[piece, None]
            members = head.members(calls.problem[piece], calls.call[piece], dropout, offset)
            optimizer.zero_grad()
            vendor_loss(members, calls.target[piece], calls.noise[piece]).backward()
            optimizer.step()
        if progress is not None:
            progress({"head": epoch + 1, "heads": epochs})
        if limit.is_over:
            break
    head.eval()
