"""Candidates of a problem: everything the hardware can run it with."""

from torch_diode.candidates.gpu.eligibility import k_splits, offered_templates
from torch_diode.candidates.gpu.resources import Resources, resources_of
from torch_diode.candidates.space import candidate_space

__all__ = ["Resources", "candidate_space", "k_splits", "offered_templates", "resources_of"]
