"""The config of a kernel, by Inductor's names: what a convolution's, an attention's and other
templates have in common."""

from __future__ import annotations

from dataclasses import dataclass, replace

from torch_diode.types.errors import InvalidValueError


@dataclass(frozen=True)
class KernelConfig:
    """Block sizes by Inductor's names, stages and warps of one kernel."""

    blocks: tuple[tuple[str, int], ...]
    num_stages: int
    num_warps: int

    def __getitem__(self, name: str) -> int:
        return dict(self.blocks)[name]

    def changed(self, **given: int) -> KernelConfig:
        """A copy with other values: `num_warps=8`, or blocks by name: `BLOCK_M=64`."""
        blocks = dict(self.blocks)
        unknown = given.keys() - blocks.keys() - {"num_stages", "num_warps"}
        if unknown:
            raise InvalidValueError(
                f"KernelConfig: got {', '.join(sorted(unknown))}; expected num_stages, num_warps "
                f"or one of {', '.join(blocks)}"
            )
        return replace(
            self,
            blocks=tuple((name, given.get(name, size)) for name, size in self.blocks),
            num_stages=given.get("num_stages", self.num_stages),
            num_warps=given.get("num_warps", self.num_warps),
        )

    @property
    def sizes(self) -> tuple[int, ...]:
        """The blocks without their names, then stages and warps."""
        return (*(size for _, size in self.blocks), self.num_stages, self.num_warps)

    def is_within(self, other: KernelConfig) -> bool:
        """True if no block is larger than the other's, and there are no more stages."""
        mine, most = self.sizes[:-1], other.sizes[:-1]
        return all(size <= limit for size, limit in zip(mine, most, strict=True))

    def __str__(self) -> str:
        sizes = "x".join(str(size) for _, size in self.blocks)
        return f"{sizes} stages={self.num_stages} warps={self.num_warps}"
