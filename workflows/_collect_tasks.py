"""Candidates to time per problem: for training, for validation, and again."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np

from torch_diode.candidates.space import candidate_space
from torch_diode.collection.kernels.library import KernelLibrary
from torch_diode.collection.plan import Group, Task, kind_name, kind_of
from torch_diode.collection.shape_sampling import Sizes
from torch_diode.heuristics.analytical import AnalyticalHeuristic
from torch_diode.integration.capture.template_source import template_source
from torch_diode.model.registry import load_registered
from torch_diode.types.candidate import ATEN, Candidate
from torch_diode.types.candidate_arrays import NUMBER_FIELDS, Candidates
from torch_diode.types.dataset import Dataset
from torch_diode.types.hardware import Hardware
from torch_diode.types.problem import MMShape
from workflows.measuring.problem_class import ProblemClass

FAR = 6.0
"""Candidates that the analytical heuristic predicts this many times slower than the best are timed
on a tenth of the training problems only, since they would take most of the GPU's time."""
RECHECKED = 1.12
RANKED = 24
"""Number of the model's first choices per problem that vote for the configs of its kind."""
NEAR, POSSIBLE = 1.35, 1.6
"""Candidates predicted within the first are timed; those within the second are sampled."""
CHANCE = 0.25


def candidate_configs(
    problems: list[MMShape], hardware: Hardware, per_template: int, seed: int
) -> set[Candidate]:
    """Configs of a problem class: half at random, half ranked high by the analytical heuristic."""
    everything = {c for p in problems[:40] for c in candidate_space(p, hardware) if c.config}
    votes: Counter[Candidate] = Counter()
    heuristic = AnalyticalHeuristic()
    for problem in problems[:60]:
        space = candidate_space(problem, hardware)
        times = heuristic.predict_us(problem, space, hardware)
        for template in space.templates:
            rows = np.flatnonzero(space.is_template(template))
            for row in rows[np.argsort(times[rows])][:30]:
                votes[space[int(row)]] += 1
    chosen: set[Candidate] = set()
    source = random.Random(seed)
    for template in sorted({c.template for c in everything}):
        own = sorted((c for c in everything if c.template == template), key=str)
        best = [c for c, _ in votes.most_common() if c.template == template]
        best = best[: per_template // 2]
        rest = [c for c in own if c not in set(best)]
        chosen |= {*best, *source.sample(rest, min(len(rest), per_template - len(best)))}
    return chosen


def training_group(
    problem_class: ProblemClass,
    hardware: Hardware,
    problems: int,
    per_template: int,
    seed: int,
    never: frozenset[Sizes],
) -> Group:
    """Problems of a class, each with those of the class's configs that can run it."""
    shapes = problem_class.problems(problems, seed, never)
    configs = candidate_configs(shapes, hardware, per_template, seed)
    tasks: list[Task] = []
    for shape in shapes:
        space = candidate_space(shape, hardware)
        times = AnalyticalHeuristic().predict_us(shape, space, hardware)
        far = FAR * times.min() if len(tasks) % 10 else np.inf
        keep = [
            c
            for c, expected in zip(space, times, strict=True)
            if c.config is None or (c in configs and expected <= far)
        ]
        tasks.append((shape, Candidates.of(keep)))
    return Group.of(problem_class.name, tasks, KernelLibrary(template_source, hardware.units))


def ranked_group(
    classes: list[ProblemClass],
    hardware: Hardware,
    problems: int,
    configs: int,
    seed: int,
    never: frozenset[Sizes],
) -> Group:
    """Problems of classes of one kind, each with the candidates that the shipped model ranks first.

    A model's errors matter most in what it ranks first: of a thousand candidates that is often the
    one whose time it underestimates most. Three quarters of the configs are those it ranks first
    most often, the others are sampled from all it considers possible.
    """
    model = load_registered("matmul", hardware)
    asked: list[tuple[MMShape, dict[Candidate, float]]] = []
    votes: Counter[Candidate] = Counter()
    drawn = {shape: None for s in classes for shape in s.problems(problems, seed, never)}
    for shape in random.Random(seed).sample(list(drawn), len(drawn)):
        space = candidate_space(shape, hardware)
        times, _ = model.predict_us(shape, space, hardware)
        order = np.argsort(times)
        order = order[times[order] <= POSSIBLE * times[order[0]]]
        times = times / times[order[0]]
        found = {space[int(row)]: float(times[row]) for row in order}
        for rank, candidate in enumerate(list(found)[:RANKED]):
            votes[candidate] += 1 / (1 + rank)
        asked.append((shape, found))
    chosen = {c for c, _ in votes.most_common(round((1 - CHANCE) * configs))}
    others = sorted({c for _, found in asked for c in found} - chosen, key=str)
    source = random.Random(seed)
    chosen |= set(source.sample(others, min(len(others), configs - len(chosen))))
    tasks: list[Task] = []
    for shape, found in asked:
        near = [c for c, over in found.items() if c in chosen and c.config and over <= NEAR]
        tasks.append((shape, Candidates.of([Candidate(ATEN), *near])))
    name = kind_name(kind_of(asked[0][0]))
    return Group.of(name, tasks, KernelLibrary(template_source, hardware.units))


def validation_group(name: str, problems: list[MMShape], hardware: Hardware) -> Group:
    """Problems with their complete space."""
    tasks: list[Task] = [(p, candidate_space(p, hardware)) for p in problems]
    return Group.of(name, tasks, KernelLibrary(template_source, hardware.units))


def contenders(dataset: Dataset, hardware: Hardware) -> list[Task]:
    """Each problem with those of its timed candidates that may be the fastest, measured or
    predicted near the best, and ATen."""
    model = load_registered("matmul", hardware)
    codes, names = dataset.codes("template")
    times, ids = dataset.values("time_us"), dataset.problems.ids
    tasks: list[Task] = []
    for row in dataset.problems.first.tolist():
        own = np.flatnonzero((ids == ids[row]) & np.isfinite(times))
        fields = {n: dataset.values(n)[own].astype(np.int32) for n in NUMBER_FIELDS}
        candidates = Candidates(tuple(names), codes[own].astype(np.int32), fields)
        problem = dataset.problem(row)
        predicted, _ = model.predict_us(problem, candidates, hardware)
        wanted = predicted <= RECHECKED * predicted.min()
        wanted |= times[own] <= RECHECKED * times[own].min()
        tasks.append((problem, candidates.take(wanted | candidates.is_template(ATEN))))
    return tasks


def missing(dataset: Dataset, hardware: Hardware) -> list[Task]:
    """Each problem with those of its candidates that have no timing in the data set, and ATen."""
    have: dict[MMShape, set[Candidate]] = {}
    for timing in dataset:
        have.setdefault(timing.problem, set()).add(timing.candidate)
    tasks: list[Task] = []
    for problem, timed in have.items():
        space = candidate_space(problem, hardware)
        wanted = [c.template == ATEN or c not in timed for c in space]
        if sum(wanted) > 1:
            tasks.append((problem, space.take(np.array(wanted))))
    return tasks
