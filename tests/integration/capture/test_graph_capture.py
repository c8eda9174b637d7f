import pytest
import torch
import torch._inductor.config as config

from tests.samples import H200
from torch_diode.heuristics import AnalyticalHeuristic
from torch_diode.integration import registration
from torch_diode.integration.capture.graph_capture import capturing, lower_on


def decided_for(*graphs):
    before = len(registration.explain())
    with registration.using(AnalyticalHeuristic()):
        for graph in graphs:
            lower_on(graph, H200)
    return [str(decision.problem) for decision in registration.explain()[before:]]


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = torch.nn.Linear(32, 64)
        self.register_buffer("scale", torch.ones(64))

    def forward(self, x):
        return self.inner(x) * self.scale + torch.arange(64)


def test_forward_and_backward_of_a_cpu_program_are_decided_for_the_chip():
    with capturing() as graphs:
        torch.compile(Net())(torch.randn(16, 32, requires_grad=True)).sum().backward()
    assert len(graphs) == 2
    assert decided_for(*graphs) == [
        "addmm:16x64x32:float32:nt",
        "mm:16x32x64:float32:nn",
        "mm:64x32x16:float32:tn",
    ]


def test_dynamic_sizes_are_those_the_program_ran_with():
    with capturing() as graphs:
        torch.compile(torch.bmm, dynamic=True)(torch.randn(4, 16, 32), torch.randn(4, 32, 24))
    assert decided_for(*graphs) == ["bmm:4x16x24x32:float32:nn"]


def test_nothing_is_captured_or_changed_outside():
    before = (config.post_grad_custom_pre_pass, config.force_disable_caches)
    with capturing() as graphs:
        pass
    torch.compile(torch.mm)(torch.randn(4, 4), torch.randn(4, 4))
    assert graphs == []
    assert (config.post_grad_custom_pre_pass, config.force_disable_caches) == before


def test_the_users_own_pass_still_runs():
    graphs = []
    with config.patch(post_grad_custom_pre_pass=graphs.append), capturing():
        torch.compile(lambda a: a @ a)(torch.randn(4, 4))
    assert len(graphs) == 1


@pytest.fixture(autouse=True)
def _reset_dynamo():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


@pytest.mark.parametrize(
    ("mode", "recorded"), [("default", "plain"), ("max-autotune-no-cudagraphs", "max-autotune")]
)
def test_a_graph_is_decided_in_the_mode_the_program_compiles_it_in(mode, recorded):
    with capturing() as graphs:
        torch.compile(torch.mm, mode=mode)(torch.randn(64, 512), torch.randn(512, 96))
    decided_for(*graphs)
    decision = registration.explain()[-1]
    assert decision.mode == recorded
    assert (decision.kept > 1) == (recorded == "max-autotune")
