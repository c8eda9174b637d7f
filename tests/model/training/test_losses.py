import pytest
import torch

from torch_diode.model.training.batches import ProblemBatches
from torch_diode.model.training.losses import listwise_loss, regression_loss, vendor_loss


def test_the_truth_has_the_least_of_every_loss(table):
    batch = next(ProblemBatches(table).draw(8))
    wrong = batch.target + 0.3 * torch.randn_like(batch.target)
    truth = batch.target
    for loss in (
        lambda predicted: regression_loss(predicted, batch, 0.25, 0.05),
        lambda predicted: listwise_loss(predicted, batch, 0.08),
    ):
        assert loss(truth) < loss(wrong)
    assert regression_loss(truth, batch, 0.25, 0.05) == 0
    assert listwise_loss(truth, batch, 0.08).item() == pytest.approx(0, abs=1e-5)


def test_a_list_loss_is_about_differences_and_the_regression_about_the_times(table):
    batch = next(ProblemBatches(table).draw(8))
    shifted = batch.target + torch.randn(len(batch))[batch.group]
    assert listwise_loss(shifted, batch, 0.08).item() == pytest.approx(0, abs=1e-5)
    assert regression_loss(shifted, batch, 0.25, 0.05) > 0.01


def test_noisy_times_and_stalled_measurements_weigh_less_in_a_librarys_loss():
    target = torch.zeros(2)
    exact, noisy = torch.zeros(2), torch.tensor([0.0, 0.2])
    wrong = torch.tensor([[0.1, 0.3]])
    assert vendor_loss(wrong, target, noisy) < vendor_loss(wrong, target, exact)
    far, further = torch.tensor([[0.1, 5.0]]), torch.tensor([[0.1, 50.0]])
    assert vendor_loss(far, target, exact) == vendor_loss(further, target, exact)
