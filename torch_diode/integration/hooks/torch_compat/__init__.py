"""The differences between torch releases 2.9 to 2.15: all of them, and only here.

Each is detected from the interface, not the version, except one that no interface shows
(`fuses_reshaped_epilogues`). Other modules of this package call on torch only what is the same in
all these releases.
"""

from torch_diode.integration.hooks.torch_compat.answer_hooks import (
    answer_hooks,
    is_strict_reduction,
    reduction_arguments,
)
from torch_diode.integration.hooks.torch_compat.attention import (
    AttentionCall,
    attention_arguments,
    attention_call,
)
from torch_diode.integration.hooks.torch_compat.benchmarking import (
    add_preprocessing,
    launch_of,
    release_launch,
)
from torch_diode.integration.hooks.torch_compat.choices import (
    annotations_of,
    can_be_rendered,
    choices_slot,
    disable_prologue_fusion,
    fixed_layout,
    library_choice,
    template_uid,
)
from torch_diode.integration.hooks.torch_compat.freezing import (
    linear_patterns,
    pack_for_onednn,
    packs_float32_for_mkl,
)
from torch_diode.integration.hooks.torch_compat.matmul_hook import (
    FINALIZE_HOOK,
    matmul_hook,
    other_hook,
    why_unusable,
)
from torch_diode.integration.hooks.torch_compat.provenance import (
    dataset_provenance,
    template_hashes,
)
from torch_diode.integration.hooks.torch_compat.settings import (
    batch_invariant,
    compiles_ahead,
    compiles_in_subprocess,
    config_options,
    devices_in,
    serializes_graphs,
    tf32_allowed,
)
from torch_diode.integration.hooks.torch_compat.sizes import (
    hints,
    known_at_most,
    plain_sizes,
    range_of,
    traced_size,
    traced_size_or_none,
)
from torch_diode.integration.hooks.torch_compat.template_kwargs import (
    TemplateKwargs,
    is_shareable,
    template_kwargs_key,
    template_kwargs_of,
)
from torch_diode.integration.hooks.torch_compat.templates import (
    has_lowering,
    max_batch_size,
    offers_tma,
    reads_template,
    tma_template,
)
from torch_diode.integration.hooks.torch_compat.versions import (
    fuses_reshaped_epilogues,
    has_triton,
    installed_versions,
    takes_slices,
    torch_release,
)

__all__ = [
    "FINALIZE_HOOK",
    "AttentionCall",
    "TemplateKwargs",
    "add_preprocessing",
    "annotations_of",
    "answer_hooks",
    "attention_arguments",
    "attention_call",
    "batch_invariant",
    "can_be_rendered",
    "choices_slot",
    "compiles_ahead",
    "compiles_in_subprocess",
    "config_options",
    "dataset_provenance",
    "devices_in",
    "disable_prologue_fusion",
    "fixed_layout",
    "fuses_reshaped_epilogues",
    "has_lowering",
    "has_triton",
    "hints",
    "installed_versions",
    "is_shareable",
    "is_strict_reduction",
    "known_at_most",
    "launch_of",
    "library_choice",
    "linear_patterns",
    "matmul_hook",
    "max_batch_size",
    "offers_tma",
    "other_hook",
    "pack_for_onednn",
    "packs_float32_for_mkl",
    "plain_sizes",
    "range_of",
    "reads_template",
    "reduction_arguments",
    "release_launch",
    "serializes_graphs",
    "takes_slices",
    "template_hashes",
    "template_kwargs_key",
    "template_kwargs_of",
    "template_uid",
    "tf32_allowed",
    "tma_template",
    "torch_release",
    "traced_size",
    "traced_size_or_none",
    "why_unusable",
]
