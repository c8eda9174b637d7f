"""Training of the heads for the vendor library: ATen, and splits of K.

They see whole calls and no configs, so a problem with nothing but ATen timed teaches as much as any
other. What the heads learn from is rows of features and log times, each with its noise. How far a
campaign of library calls alone differs from one with configs between them is learnt beside them, as
an offset, and then left out: a ranking compares with configs.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from torch_diode.model.networks.timing_models import VendorHead
from torch_diode.model.training.epoch import Row
from torch_diode.model.training.losses import vendor_loss
from torch_diode.model.training.schedule import set_rate
from torch_diode.model.training.vendor_calls import Calls

_DECAY = 1e-2
_FIRST_SPREAD = 0.3
"""Of the last layer, so that training starts near the mean."""


def train_head(
    head: VendorHead,
    calls: Calls,
    epochs: int,
    rate: float,
    dropout: float,
    seed: int,
    progress: Callable[[Row], None] | None = None,
    batch: int = 512,
    afresh: bool = True,
) -> None:
    """Train a head, in place; afresh, or from the weights it has. The members of a head learn from
    the same rows and differ by where they start and by dropout. `progress` is told of each time
    through them as `head` of `heads`."""
    if not len(calls):
        return
    if afresh:
        head.norm.fit(torch.cat([calls.problem, calls.call], dim=1))
        with torch.no_grad():
            head.biases[-1].fill_(float(calls.target.mean()))
            head.weights[-1].mul_(_FIRST_SPREAD)
    head.trained.fill_(1)
    apart = torch.nn.Parameter(torch.zeros_like(head.biases[0]))
    parameters = [*head.parameters(), apart]
    optimizer = torch.optim.AdamW(parameters, rate, weight_decay=_DECAY, fused=True)
    rng = np.random.default_rng(seed)
    head.train()
    for epoch in range(epochs):
        order = torch.from_numpy(rng.permutation(len(calls))).to(calls.target.device)
        pieces = order.split(batch)
        for number, piece in enumerate(pieces):
            set_rate(optimizer, rate, (epoch + number / len(pieces)) / epochs)
            offset = apart * calls.alone[piece, None]
            members = head.members(calls.problem[piece], calls.call[piece], dropout, offset)
            optimizer.zero_grad()
            vendor_loss(members, calls.target[piece], calls.noise[piece]).backward()
            optimizer.step()
        if progress is not None:
            progress({"head": epoch + 1, "heads": epochs})
    head.eval()
