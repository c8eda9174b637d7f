"""Status as text."""

from collections import Counter

from torch_diode.integration.hooks.fallback import Counters
from torch_diode.integration.status import Status, Step


def test_the_text_has_every_field():
    status = Status(
        enabled=True,
        distribution="torch-diode",
        torch="2.13.0",
        mode="auto",
        steps=(Step("torch", "ok", "2.13.0"), Step("matmul", "failed", "no hook")),
        hardware=("nvidia-h200",),
        heuristics={"nvidia-h200": "model v3"},
        integrations={"matmul": "torch-diode"},
        counters=Counters(7, Counter({"no row": 2}), Counter({"OSError: gone": 1})),
        notes=("model: trained under torch 2.11",),
    )
    assert [step.name for step in status.failed] == ["matmul"]
    assert str(status).splitlines() == [
        "torch-diode is on (torch-diode, torch 2.13.0, mode auto)",
        "  torch   ok       2.13.0",
        "  matmul  failed   no hook",
        "hardware: nvidia-h200",
        "heuristic on nvidia-h200: model v3",
        "integration matmul: from torch-diode",
        "torch config turned on: none",
        "decisions: 7, abstentions: 2, fallbacks: 1",
        "  abstained 2 times: no row",
        "  fell back 1 times: OSError: gone",
        "note: model: trained under torch 2.11",
    ]
