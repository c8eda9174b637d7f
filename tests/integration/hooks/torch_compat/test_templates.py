"""What is known of a release's templates is so."""

import torch

from torch_diode.integration.hooks import torch_compat


def test_the_batch_limit_is_that_of_this_release():
    splits = not torch.__version__.startswith(("2.9.", "2.10.", "2.11."))
    assert torch_compat.max_batch_size() == (None if splits else 65535)
