"""The registry of properties: one declaration of each property, at the function that makes its condition.

A declaration has the name, the kind and the texts of a property. Selection by name, defaults, errors, the command
`list` and the pages of the manual use nothing else:

    @ENSEMBLE_PROPERTIES.declare("OneLeader", Kind.ALWAYS, requirements=("R11",), meaning="...", premise="...")
    def _one_leader(setup: Setup) -> Condition:
        return Condition(reads, check)

Each kind of model has a registry: ensembles, recipes, and the service. The order of declarations is the order of
listings and of defaults.

Rules of this module: an unknown name raises `UnknownPropertyError`, and a wrong parameter, or a property that does not
apply to the setup, raises `ParameterError`. Both errors have the mistake and the remedy; the caller adds the file and
the line. No verdict depends on a text.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Generic, TypedDict, TypeVar, Unpack

from checker.engine import Finding, Kind, Property, Read
from checker.engine.model import Trivial
from checker.engine.steps import Judge, StepProperty
from checker.printable import nearest

Setup = TypeVar("Setup")
Fact = TypeVar("Fact")
Answer = Finding | Trivial | None
Constructor = TypeVar("Constructor", bound="Callable[..., Condition | StepCondition]")


class UnknownPropertyError(Exception):
    """The name is not a known property; `right` contains the nearest known name."""

    def __init__(self, name: object, known: Collection[str]) -> None:
        self.right = nearest(name, known)
        self.what = f"unknown property {str(name)[:80]!r}"
        super().__init__(f"{self.what}; {self.right}")


class ParameterError(Exception):
    """The parameter of a property is wrong; the error has the mistake and the correct form.

    `inside` leads from the parameter to the place, as keys.
    """

    def __init__(self, what: str, right: str, inside: tuple[str | int, ...] = ()) -> None:
        super().__init__(f"{what}; {right}")
        self.what, self.right, self.inside = what, right, inside


@dataclass(frozen=True)
class Condition:
    """The part of a property that depends on the setup: its reads, its check, and what need not happen for it."""

    reads: tuple[Read, ...]
    check: Callable[..., Answer]
    unfair: frozenset[str] = frozenset()


@dataclass(frozen=True)
class StepCondition:
    """The part of a property of steps that depends on the setup; see `StepProperty`."""

    actors: tuple[str, ...]
    judge: Judge
    demands: tuple[Read, ...] = ()


@dataclass(frozen=True)
class Scope(Generic[Setup]):
    """A set of setups; `text` describes it in the manual, `what` and `remedy` in the error for a setup outside it."""

    covers: Callable[[Setup], bool]
    text: str
    what: str = ""
    remedy: str = ""


@dataclass(frozen=True)
class Parameter(Generic[Setup]):
    """A parameter: its description, an example, and its reader.

    The reader returns the value for the constructor and the text for the property's name. It raises ParameterError.
    """

    description: str
    example: str
    read: Callable[[Setup, object], tuple[object, str]]


class Terms(TypedDict, Generic[Setup, Fact], total=False):
    """The parts of a declaration that it may leave out."""

    violation: str
    premise: str
    requirements: tuple[str, ...]
    source: str
    notes: str
    parameter: Parameter[Setup]
    default: Scope[Setup]
    needs: Scope[Setup]
    in_journals: bool
    facts: tuple[Fact, ...]


@dataclass(frozen=True)
class Declaration(Generic[Setup, Fact]):
    """A property that can be named.

    `meaning` and `premise` are sentences without a full stop, `notes` whole sentences for the manual, and `violation`
    is the consequence of a violation in the terms of an operator. `default` is the scope of setups that have the
    property without asking for it, `needs` the scope that it applies to. `in_journals`: the validation of journals
    examines it even if it is not a default. The model records `facts` for it.
    """

    name: str
    kind: Kind
    construct: Callable[..., Condition | StepCondition]
    meaning: str
    violation: str = ""
    premise: str = ""
    requirements: tuple[str, ...] = ()
    source: str = ""
    notes: str = ""
    parameter: Parameter[Setup] | None = None
    default: Scope[Setup] | None = None
    needs: Scope[Setup] | None = None
    in_journals: bool = False
    facts: tuple[Fact, ...] = ()

    def build(self, setup: Setup, given: object = None) -> Property:
        """The property for a setup. Raises ParameterError."""
        name, arguments = self.name, []
        if self.parameter is None and given is not None:
            raise ParameterError(f"{name} takes no parameter", f"write {name} alone")
        if self.parameter is not None and given is None:
            raise ParameterError(
                f"{name} takes a parameter",
                f"give {self.parameter.description}, as in {name}: {self.parameter.example}",
            )
        if self.needs is not None and not self.needs.covers(setup):
            raise ParameterError(f"{name} {self.needs.what}", self.needs.remedy)
        if self.parameter is not None:
            value, text = self.parameter.read(setup, given)
            name, arguments = f"{name}({text})", [value]
        condition = self.construct(setup, *arguments)
        if isinstance(condition, StepCondition):
            return StepProperty.over(
                name, condition.actors, condition.judge, meaning=self.meaning, demands=condition.demands
            )
        return Property(name, condition.reads, condition.check, self.kind, self.meaning, condition.unfair)


class Registry(Mapping[str, Declaration[Setup, Fact]]):
    """The declared properties of one kind of model, by name."""

    def __init__(self, models: str) -> None:
        self.models = models
        self._declared: dict[str, Declaration[Setup, Fact]] = {}

    def __getitem__(self, name: str) -> Declaration[Setup, Fact]:
        return self._declared[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._declared)

    def __len__(self) -> int:
        return len(self._declared)

    def declare(
        self, name: str, kind: Kind, *, meaning: str, **terms: Unpack[Terms[Setup, Fact]]
    ) -> Callable[[Constructor], Constructor]:
        """Register a property; the decorated function makes its condition from a setup and the parameter, if any.

        Raises ValueError for a second declaration of a name.
        """
        if name in self._declared:
            raise ValueError(f"{name} is declared twice")

        def decorate(construct: Constructor) -> Constructor:
            self._declared[name] = Declaration(name, kind, construct, meaning, **terms)
            return construct

        return decorate

    def find(self, name: object) -> Declaration[Setup, Fact]:
        """The property of that name. Raises UnknownPropertyError."""
        if not isinstance(name, str) or name not in self._declared:
            raise UnknownPropertyError(name, self._declared)
        return self._declared[name]

    def build(self, setup: Setup, name: object, parameter: object = None) -> Property:
        """A property of that name for a setup. Raises UnknownPropertyError and ParameterError."""
        return self.find(name).build(setup, parameter)

    def defaults(self, setup: Setup) -> tuple[str, ...]:
        """The properties that a setup has without asking for them."""
        return tuple(entry.name for entry in self.values() if entry.default is not None and entry.default.covers(setup))

    def build_defaults(self, setup: Setup) -> list[Property]:
        """The default properties for a setup."""
        return [self.build(setup, name) for name in self.defaults(setup)]

    def build_for_journals(self, setup: Setup) -> list[Property]:
        """The properties that the validation of journals examines: the defaults, and those that ask for it.

        Properties of steps are left out: validation compares each step with the specification itself.
        """
        rest = [entry.build(setup) for entry in self.values() if entry.in_journals and _covers(entry.needs, setup)]
        return [default for default in (*self.build_defaults(setup), *rest) if not isinstance(default, StepProperty)]


def _covers(scope: Scope[Setup] | None, setup: Setup) -> bool:
    return scope is None or scope.covers(setup)
