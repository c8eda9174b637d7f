"""Inductor's real CUDA lowering on a machine without that GPU, or any GPU.

Inductor itself traces and lowers fake "cuda" tensors; only its queries of the device are answered
from a `Hardware`. The result is the code that hardware would run; it cannot run here. Used by
tests, `explain --hardware` and the demo.
"""

from __future__ import annotations

import contextlib
import inspect
import re
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from unittest import mock

import torch
import torch._inductor.config as inductor_config
from torch._dynamo import device_interface
from torch._dynamo.source import ConstantSource
from torch._guards import TracingContext, tracing
from torch._inductor import utils as inductor_utils
from torch._inductor.codecache import CacheBase
from torch._inductor.debug import DebugContext
from torch._inductor.decomposition import select_decomp_table
from torch._inductor.graph import GraphLowering
from torch._inductor.runtime import hints, triton_helpers
from torch._inductor.virtualized import V
from torch._subclasses import fake_tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv
from torch.utils import _triton as torch_triton
from torch.utils._pytree import tree_leaves

from torch_diode.hardware import reported_names
from torch_diode.integration.hooks import device_hardware, torch_compat
from torch_diode.types.errors import InvalidValueError, MissingPartError
from torch_diode.types.hardware import Hardware


@dataclass(frozen=True)
class Dynamic:
    """A symbolic dimension, with its hint."""

    name: str
    hint: int


@dataclass(frozen=True)
class Input:
    """The description of a fake tensor."""

    shape: tuple[int | Dynamic, ...]
    dtype: torch.dtype = torch.bfloat16
    strides: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Lowered:
    """The result of lowering a function."""

    graph: Any
    source: str

    @property
    def kernels(self) -> list[str]:
        """The kernels of the generated code, in order: vendor calls, and Triton kernels by name."""
        pattern = r"extern_kernels\.(\w+)\(|async_compile\.triton\('(\w+)'"
        return [vendor or triton for vendor, triton in re.findall(pattern, self.source)]

    @property
    def configs(self) -> list[dict[str, Any]]:
        """The configs of the matmul templates in the generated code."""
        configs = []
        for text in re.findall(r"'config_args': \{(.*?)\}", self.source):
            pairs = re.findall(r"'(\w+)': ([\w.']+)", text)
            configs.append({name: int(value) for name, value in pairs if value.isdigit()})
        return configs


def check_can_lower(hardware: Hardware) -> None:
    """Refuse a chip other than NVIDIA's, and an environment without Triton."""
    if hardware.kind != "cuda":
        raise InvalidValueError(
            f"hardware: got {hardware.name}, a {hardware.kind} chip; expected an NVIDIA chip"
        )
    if not torch_compat.has_triton():
        raise MissingPartError(
            "triton: not installed; Inductor needs it to compile for a GPU, even for one that is "
            "not here; pip install triton"
        )


@contextlib.contextmanager
def pretend(hardware: Hardware) -> Iterator[None]:
    """Make torch and Inductor see one CUDA device with this hardware's properties."""
    check_can_lower(hardware)
    properties = device_properties(hardware)
    _clear_device_caches()
    # As FakeTensorMode does without CUDA: fake CUDA tensors then need no driver.
    if hasattr(torch._C, "_ensureCUDADeviceGuardSet"):
        torch._C._ensureCUDADeviceGuardSet()
    try:
        with contextlib.ExitStack() as stack:
            stack.enter_context(device_hardware.pretending(hardware))
            for target, name, value in _patches(properties):
                stack.enter_context(mock.patch.object(target, name, value))
            yield
    finally:
        _clear_device_caches()


def lower(
    fn: Callable[..., Any],
    inputs: Sequence[Input],
    config: Mapping[str, Any] | None = None,
    *,
    generate: bool = True,
) -> Lowered:
    """Trace a function on fake CUDA tensors and lower it with Inductor, under the given config.

    Uses the installed choices handler. Call it inside `pretend`, or on a machine with a GPU.
    """
    mode, tensors = _fake_tensors(inputs)
    with mode:
        traced = make_fx(
            lambda *args: _tensors_in(fn(*args)),
            decomposition_table=select_decomp_table(),
            tracing_mode="real",
        )(*tensors)
    # As a compile does; some lowerings return only the outputs that are used.
    traced.graph.eliminate_dead_code()
    with contextlib.ExitStack() as stack:
        stack.enter_context(inductor_config.patch(dict(config or {})))
        graph = GraphLowering(traced, example_inputs=tensors, shape_env=mode.shape_env)
        # As in a compile, where torch.load and others create fake tensors.
        stack.enter_context(tracing(TracingContext(mode)))
        stack.enter_context(V.set_fake_mode(mode))
        stack.enter_context(V.set_graph_handler(graph))
        stack.enter_context(V.set_debug_handler(DebugContext()))
        graph.run(*tensors)
        return Lowered(graph, _code_of(graph) if generate else "")


def _tensors_in(result: Any) -> tuple[torch.Tensor, ...]:
    """The tensors of a function's result, in order, as a graph returns them."""
    return tuple(leaf for leaf in tree_leaves(result) if isinstance(leaf, torch.Tensor))


def device_properties(hardware: Hardware) -> types.SimpleNamespace:
    """The hardware as `torch.cuda.get_device_properties` would report it."""
    capability = re.fullmatch(r"sm_(\d+)(\d)[a-z]?", hardware.arch)
    if capability is None:
        raise InvalidValueError(
            f"hardware: got {hardware.name} with architecture {hardware.arch!r}; expected sm_NN"
        )
    name = reported_names(hardware.name)[0]
    return types.SimpleNamespace(
        name=name,
        gcnArchName=name,
        major=int(capability[1]),
        minor=int(capability[2]),
        multi_processor_count=hardware.units,
        total_memory=hardware.memory_bytes,
        warp_size=hardware.warp_size or 32,
        regs_per_multiprocessor=hardware.registers_per_unit,
        max_threads_per_multi_processor=hardware.threads_per_unit,
        max_threads_per_block=1024,
        shared_memory_per_block=49152,
        shared_memory_per_block_optin=hardware.shared_memory_per_block,
        shared_memory_per_multiprocessor=hardware.shared_memory_per_unit,
        L2_cache_size=hardware.l2_bytes,
        clock_rate=hardware.clock_mhz * 1000,
        memory_clock_rate=0,
        memory_bus_width=0,
        is_integrated=0,
        is_multi_gpu_board=0,
        uuid="GPU-fake",
        pci_bus_id=0,
        pci_device_id=0,
        pci_domain_id=0,
    )


class FakeDriver:
    """Triton's driver, as far as it is used before any launch."""

    def __init__(self, properties: types.SimpleNamespace) -> None:
        self._properties = properties
        self.utils = types.SimpleNamespace(get_device_properties=self._triton_properties)

    def get_current_target(self) -> Any:
        """The instruction set to compile for."""
        from triton.backends.compiler import GPUTarget

        capability = self._properties.major * 10 + self._properties.minor
        return GPUTarget("cuda", capability, self._properties.warp_size)

    def get_current_device(self) -> int:
        """Always 0."""
        return 0

    def get_active_torch_device(self) -> torch.device:
        """The same as a torch device."""
        return torch.device("cuda", 0)

    def _triton_properties(self, device: int) -> dict[str, int]:
        properties = self._properties
        return {
            "max_shared_mem": properties.shared_memory_per_block_optin,
            "max_num_regs": properties.regs_per_multiprocessor,
            "multiprocessor_count": properties.multi_processor_count,
            "warpSize": properties.warp_size,
            "sm_clock_rate": properties.clock_rate,
            "mem_clock_rate": properties.memory_clock_rate,
            "mem_bus_width": properties.memory_bus_width,
        }


def _patches(properties: types.SimpleNamespace) -> list[tuple[Any, str, Any]]:
    """Object, attribute and replacement of each query of the device."""
    from triton.runtime.driver import driver

    capability = (properties.major, properties.minor)
    patches = [
        (torch.cuda, "is_available", lambda: True),
        (torch.cuda, "device_count", lambda: 1),
        (torch.cuda, "current_device", lambda: 0),
        (torch.cuda, "get_device_properties", lambda device=None: properties),
        (torch.cuda, "get_device_capability", lambda device=None: capability),
        # Bound when its class was created, independent of torch.cuda's.
        (
            device_interface.CudaInterface,
            "get_device_properties",
            staticmethod(lambda device=None: properties),
        ),
        (driver, "_active", FakeDriver(properties)),
        (triton_helpers, "set_driver_to_gpu", lambda: None),
    ]
    # Up to 2.11 a fake CUDA tensor creates a real one where CUDA is available.
    if hasattr(fake_tensor, "init_gpu_context"):
        patches.append((fake_tensor, "init_gpu_context", lambda device: None))
    return patches


def _clear_device_caches() -> None:
    """Clear torch's caches of device properties."""
    for holder in (torch_triton, inductor_utils, hints, hints.DeviceProperties, CacheBase):
        for _, member in inspect.getmembers(holder, lambda value: hasattr(value, "cache_clear")):
            if str(getattr(member, "__module__", "")).startswith("torch"):
                member.cache_clear()
    device_interface.caching_worker_device_properties.pop("cuda", None)


def _fake_tensors(inputs: Sequence[Input]) -> tuple[FakeTensorMode, list[torch.Tensor]]:
    env = ShapeEnv()
    mode = FakeTensorMode(shape_env=env)
    symbols: dict[str, Any] = {}

    def size_of(dim: int | Dynamic) -> Any:
        if isinstance(dim, int):
            return dim
        if dim.name not in symbols:
            source = ConstantSource(dim.name)
            symbol = env.create_symbol(dim.hint, source, dynamic_dim=DimDynamic.DYNAMIC)
            symbols[dim.name] = env.create_symintnode(symbol, hint=dim.hint, source=source)
        return symbols[dim.name]

    with mode:
        tensors = []
        for given in inputs:
            shape = tuple(map(size_of, given.shape))
            if given.strides is None:
                tensor = torch.empty(shape, device="cuda", dtype=given.dtype)
            else:
                tensor = torch.empty_strided(shape, given.strides, device="cuda", dtype=given.dtype)
            tensors.append(tensor)
    return mode, tensors


def _code_of(graph: Any) -> str:
    code = graph.codegen()
    code = code[0] if isinstance(code, tuple) else code
    return str(getattr(code, "value", code))
