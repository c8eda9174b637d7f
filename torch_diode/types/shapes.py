"""Sets of problems: to collect, to validate on, or from a user's program."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from torch_diode.types import validation
from torch_diode.types.errors import InvalidValueError
from torch_diode.types.problem import OPS, PROBLEM_FIELDS, MMShape
from torch_diode.types.validation import JSONText


@dataclass(frozen=True)
class CountedShape(JSONText):
    """A problem, its number of occurrences and its origin."""

    problem: MMShape
    count: int = 1
    origin: str = ""

    def __post_init__(self) -> None:
        validation.instance("shape", "problem", self.problem, MMShape)
        validation.whole_number("shape", "count", self.count, low=1)
        if not isinstance(self.origin, str) or len(self.origin) > 500:
            validation.refuse("shape", "origin", self.origin, "a text of at most 500 characters")

    def to_dict(self) -> dict[str, Any]:
        """The JSON form, without fields that have their default."""
        own = self.problem
        plain = MMShape(own.op, own.M, own.N, own.K, dtype=own.dtype)
        always = ("op", "M", "N", "K", "dtype")
        data = {f: v for f, v in own.to_dict().items() if f in always or v != getattr(plain, f)}
        if self.count != 1:
            data["count"] = self.count
        if self.origin:
            data["origin"] = self.origin
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> CountedShape:
        """Parse the JSON form; an unknown field is refused."""
        validation.known_keys("shape", data, (*PROBLEM_FIELDS, "count", "origin"))
        problem = MMShape.from_dict({f: data[f] for f in PROBLEM_FIELDS if f in data})
        return cls(problem, data.get("count", 1), data.get("origin", ""))


@dataclass(frozen=True)
class ShapeSet(JSONText):
    """Problems in order, each once; adding one that is there adds to its count."""

    shapes: tuple[CountedShape, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "shapes", tuple(self.shapes))
        if len({shape.problem for shape in self.shapes}) != len(self.shapes):
            raise InvalidValueError(
                "ShapeSet: got a problem twice; expected each once, use ShapeSet.of to add them up"
            )

    @classmethod
    def of(cls, shapes: Iterable[CountedShape | MMShape]) -> ShapeSet:
        """A set of these, counts of equal problems added, the first origin kept."""
        counted: dict[MMShape, CountedShape] = {}
        for item in shapes:
            shape = CountedShape(item) if isinstance(item, MMShape) else item
            before = counted.get(shape.problem)
            if before is not None:
                origin = before.origin or shape.origin
                shape = CountedShape(shape.problem, before.count + shape.count, origin)
            counted[shape.problem] = shape
        return cls(tuple(counted.values()))

    def __len__(self) -> int:
        return len(self.shapes)

    def __iter__(self) -> Iterator[CountedShape]:
        return iter(self.shapes)

    @property
    def problems(self) -> tuple[MMShape, ...]:
        """The problems alone."""
        return tuple(shape.problem for shape in self.shapes)

    def to_dict(self) -> dict[str, Any]:
        """The JSON form."""
        return {"shapes": [shape.to_dict() for shape in self]}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ShapeSet:
        """Parse the JSON form."""
        validation.known_keys("ShapeSet", data, ("shapes",), required=("shapes",))
        return cls(
            tuple(map(CountedShape.from_dict, validation.sequence("shapes", data["shapes"])))
        )

    def __or__(self, other: ShapeSet) -> ShapeSet:
        return ShapeSet.of((*self.shapes, *other.shapes))


@dataclass(frozen=True)
class OperationShapeSet(JSONText):
    """Shape sets by operation."""

    operations: tuple[tuple[str, ShapeSet], ...] = ()

    def __post_init__(self) -> None:
        for op, shapes in self.operations:
            validation.one_of("OperationShapeSet", "op", op, OPS)
            strays = {p.op for p in shapes.problems} - {op}
            if strays:
                raise InvalidValueError(
                    f"OperationShapeSet: got a {min(strays)} problem under {op!r}; "
                    f"expected {op} only"
                )
        if len(dict(self.operations)) != len(self.operations):
            raise InvalidValueError("OperationShapeSet: got an operation twice; expected each once")

    @classmethod
    def of(cls, shapes: Iterable[CountedShape | MMShape]) -> OperationShapeSet:
        """Any problems, sorted into their operations."""
        everything = ShapeSet.of(shapes)
        ops = [op for op in OPS if any(p.op == op for p in everything.problems)]
        sets = (ShapeSet(tuple(s for s in everything if s.problem.op == op)) for op in ops)
        return cls(tuple(zip(ops, sets, strict=True)))

    def __getitem__(self, op: str) -> ShapeSet:
        return dict(self.operations).get(op, ShapeSet())

    def __len__(self) -> int:
        return sum(len(shapes) for _, shapes in self.operations)

    def __iter__(self) -> Iterator[CountedShape]:
        for _, shapes in self.operations:
            yield from shapes

    @property
    def problems(self) -> tuple[MMShape, ...]:
        """All problems, operation by operation."""
        return tuple(shape.problem for shape in self)

    def to_dict(self) -> dict[str, Any]:
        """The JSON form: the members of each operation, which is not repeated in them."""
        return {
            "operations": {
                op: [{k: v for k, v in shape.to_dict().items() if k != "op"} for shape in members]
                for op, members in self.operations
            }
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> OperationShapeSet:
        """Parse the JSON form, also with the header of a file."""
        validation.known_keys("shapes", data, ("format", "version", "operations"), ("operations",))
        operations = validation.mapping("operations", data["operations"])
        return cls(tuple((op, _members(op, raw)) for op, raw in operations.items()))


def _members(op: str, raw: Any) -> ShapeSet:
    owner = f"operations {op!r:.40}"
    items = [validation.mapping(owner, item) for item in validation.sequence(owner, raw)]
    return ShapeSet(tuple(CountedShape.from_dict({"op": op, **item}) for item in items))
