"""Parameters: the only declaration of a method's hyperparameters.

A method subclasses `Parameters` and declares each hyperparameter once, with default, bounds, unit,
group and a line of documentation. Widgets, the notebook's parameters cell, papermill, the command
line and the validation are all derived from it. Built on param, whose holes it closes: unknown
names and misspelt assignments are errors with the nearest valid name, and True is not an integer.
"""

from __future__ import annotations

import ast
import difflib
import math
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Self

import param

JSON_TYPES = (bool, int, float, str, list, tuple, dict, type(None))


class ParameterError(ValueError):
    """A parameter is unknown or has a value that is not allowed; the message is one line."""

    def _render_traceback_(self) -> list[str]:
        # IPython shows this instead of a stack of frames that say nothing to the user.
        return [f"ParameterError: {self}"]


def nearest(name: str, valid: Iterable[str]) -> str:
    """`; did you mean 'x'?` for the valid name nearest to `name`, or an empty string."""
    found = difflib.get_close_matches(str(name), list(valid), n=1, cutoff=0.5)
    return f"; did you mean '{found[0]}'?" if found else ""


class _Described:
    """What our parameter types add to param's: a unit, a group, and words for what is allowed."""

    __slots__ = []
    kind: ClassVar[str]
    python: ClassVar[str]

    def __init__(self, default: Any, *, unit: str = "", group: str = "", **rest: Any):
        self.unit, self.group = unit, group
        super().__init__(default=default, **rest)

    def allowed(self) -> str:
        """What values are allowed, in words."""
        unit = f" [{self.unit}]" if self.unit else ""
        return f"{self.kind}{bounds_text(getattr(self, 'bounds', None))}{unit}"

    def hint(self, value: Any) -> str:
        """What may help with a value that is not allowed, to follow `allowed`; often nothing."""
        return ""


def bounds_text(bounds: tuple[float | None, float | None] | None) -> str:
    """` from a to b`, ` of at least a`, ` of at most b` or an empty string."""
    low, high = bounds or (None, None)
    if low is not None and high is not None:
        return f" from {low:g} to {high:g}" if abs(high) < 1e6 else f" from {low} to {high}"
    if low is not None:
        return f" of at least {low:g}"
    return f" of at most {high:g}" if high is not None else ""


class Number(_Described, param.Number):
    """A finite float."""

    __slots__ = ["group", "unit"]
    kind, python = "a number", "float"

    def _validate_value(self, val: Any, allow_None: bool) -> None:
        if isinstance(val, bool) or (isinstance(val, float) and not math.isfinite(val)):
            raise ValueError("not a finite number")
        super()._validate_value(val, allow_None)


class Integer(_Described, param.Integer):
    """An integer; unlike in plain Python, True is not one."""

    __slots__ = ["group", "unit"]
    kind, python = "an integer", "int"

    def _validate_value(self, val: Any, allow_None: bool) -> None:
        if isinstance(val, bool):
            raise ValueError("not an integer")
        super()._validate_value(val, allow_None)


class Boolean(_Described, param.Boolean):
    """True or False."""

    __slots__ = ["group", "unit"]
    kind, python = "True or False", "bool"


class Choice(_Described, param.Selector):
    """One of a few strings, given as `objects`."""

    __slots__ = ["group", "unit"]
    kind, python = "one of", "str"

    def allowed(self) -> str:
        """The choices, quoted."""
        return "one of " + ", ".join(f"'{choice}'" for choice in self.objects)

    def hint(self, value: Any) -> str:
        """The nearest choice."""
        return nearest(value, self.objects)


class Choices(_Described, param.List):
    """One or more of a few strings, given as `objects`, each at most once."""

    __slots__ = ["group", "objects", "unit"]
    python = "list"

    def __init__(self, default: Any, *, objects: Iterable[str], **rest: Any):
        self.objects = list(objects)
        super().__init__(default, **rest)

    @property
    def kind(self) -> str:
        """The choices, quoted."""
        return "one or more of " + ", ".join(f"'{choice}'" for choice in self.objects)

    def allowed(self) -> str:
        """The rule in words; bounds of a list are its length."""
        return self.kind

    def hint(self, value: Any) -> str:
        """The choice nearest to the first entry that is none."""
        entries = value if isinstance(value, list) else [value]
        return next((nearest(entry, self.objects) for entry in entries
                     if entry not in self.objects), "")  # fmt: skip

    def _validate(self, val: Any) -> None:
        super()._validate(val)
        if not val or len(set(val)) < len(val) or not set(val) <= set(self.objects):
            raise ValueError("not a choice of objects")


class Text(_Described, param.String):
    """One line of text, such as the path of a file."""

    __slots__ = ["group", "unit"]
    kind, python = "one line of text", "str"

    def _validate_value(self, val: Any, allow_None: bool) -> None:
        super()._validate_value(val, allow_None)
        if "\n" in val:
            raise ValueError("more than one line")


class Integers(_Described, param.List):
    """A short list of integers in `each` (positive by default), not empty unless `empty`."""

    __slots__ = ["each", "empty", "group", "unit"]
    python = "list"
    entries: ClassVar[tuple[str, type | tuple[type, ...]]] = ("integers", int)

    def __init__(
        self,
        default: Any,
        *,
        each: tuple[float | None, float | None] = (1, None),
        empty: bool = False,
        **rest: Any,
    ):
        self.each, self.empty = each, empty
        super().__init__(default, **rest)

    @property
    def kind(self) -> str:
        """What may be in the list, in words."""
        if self.each == (1, None) and not self.empty:
            return "a list of positive integers, for example [8, 8]"
        words = f"a list of {self.entries[0]}{bounds_text(self.each)}"
        return f"{words}, or none: []" if self.empty else words

    def allowed(self) -> str:
        """The rule in words; bounds of a list are its length."""
        return self.kind

    def _validate(self, val: Any) -> None:
        super()._validate(val)
        low, high = self.each
        for v in val:
            if isinstance(v, bool) or not isinstance(v, self.entries[1]) or not math.isfinite(v):
                raise ValueError("not numbers of the right kind")
            if (low is not None and v < low) or (high is not None and v > high):
                raise ValueError("out of bounds")
        if not val and not self.empty:
            raise ValueError("empty")


class Numbers(Integers):
    """A short list of finite numbers."""

    __slots__ = []
    entries = ("numbers", (int, float))


class Parameters(param.Parameterized):
    """Base class of every method's hyperparameters.

    Subclasses declare `slug`, the parameters, and `presets`: for each preset the values that
    differ from the defaults. `Parameters(temperature=2.0)` raises `ParameterError` for a name
    that does not exist and for a value that is not allowed.
    """

    slug: ClassVar[str] = ""
    presets: ClassVar[dict[str, dict[str, Any]]] = {"default": {}}

    seed = Integer(0, bounds=(0, 2**31 - 1), group="Run", doc="Seed of all random numbers")

    def __init__(self, **values: Any):
        super().__init__()
        with param.parameterized.discard_events(self):
            for name, value in values.items():
                if name not in self.names():  # param's own attribute `name` is not one of ours
                    raise ParameterError(self._unknown(name))
                setattr(self, name, value)
        self.check()

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self.names():
            declared = self.param[name]
            if isinstance(declared, Number) and type(value) is int:
                value = float(value)
            if isinstance(declared, Integers | Choices) and isinstance(value, tuple):
                value = list(value)
            try:
                super().__setattr__(name, value)
            except (ValueError, TypeError):
                raise ParameterError(
                    f"{name} = {_short(value)} is not allowed: {declared.allowed()}"
                    f"{declared.hint(value)}"
                ) from None
        elif name.startswith("_") or name == "name":
            super().__setattr__(name, value)
        else:
            raise ParameterError(self._unknown(name))

    def check(self) -> None:
        """Rules between parameters; subclasses raise `ParameterError` in one line."""

    def caution(self) -> str:
        """A warning to show before a run that takes very long; empty by default."""
        return ""

    @classmethod
    def names(cls) -> list[str]:
        """Names of the hyperparameters, in the order of their declaration, the seed last."""
        own = [n for n in cls.param if n not in ("name", "seed")]
        order = {n: i for i, n in enumerate(_declaration_order(cls))}
        return [*sorted(own, key=lambda n: order.get(n, len(order))), "seed"]

    @classmethod
    def _unknown(cls, name: str) -> str:
        where = f" of {cls.slug}" if cls.slug else ""
        hint = nearest(name, cls.names()) or f"; there are: {', '.join(cls.names())}"
        return f"unknown parameter '{name}'{where}{hint}"

    @classmethod
    def preset(cls, name: str = "default", **changes: Any) -> Self:
        """The parameters of a preset, with `changes` on top; unknown names are errors."""
        if name not in cls.presets:
            valid = ", ".join(cls.presets)
            hint = nearest(name, cls.presets)
            raise ParameterError(f"unknown preset '{name}' (there are: {valid}){hint}")
        return cls(**{**cls.presets[name], **changes})

    @classmethod
    def from_notebook(cls, namespace: Mapping[str, Any]) -> Self:
        """Parameters from the variables of a notebook: `from_notebook(globals())`.

        In a kernel, the names looked at are those assigned in the parameters cell and in the cell
        that papermill injects, so that a misspelt one is an error; in a plain mapping, all public
        names with plain values. Names that are absent keep their defaults.
        """
        history = namespace.get("In")
        if isinstance(history, list) and "get_ipython" in namespace:
            given = _assigned(history, cls.names())
        else:
            given = [n for n, v in namespace.items() if n[:1] != "_" and isinstance(v, JSON_TYPES)]
        return cls(**{name: namespace[name] for name in given if name in namespace})

    @classmethod
    def parse(cls, name: str, text: Any) -> Any:
        """The value that the words of a command line or a YAML file mean for a parameter.

        Raises `ParameterError` when the name is unknown or the value not allowed.
        """
        if name not in cls.names():
            raise ParameterError(cls._unknown(name))
        value = text
        declared = cls.param[name]
        if isinstance(text, str) and not isinstance(declared, Choice | Text):
            try:
                value = ast.literal_eval(text.strip())
            except (ValueError, SyntaxError):
                value = {"true": True, "false": False}.get(text.strip().lower(), text)
                if isinstance(declared, Choices):  # words without quotes and brackets
                    value = [word.strip() for word in text.strip(" []").split(",")]
        probe = cls.__new__(cls)
        param.Parameterized.__init__(probe)
        setattr(probe, name, value)
        return getattr(probe, name)

    def to_papermill(self) -> dict[str, Any]:
        """All values as a dictionary of plain Python values, for papermill and JSON."""
        return {name: getattr(self, name) for name in self.names()}

    @classmethod
    def describe(cls) -> list[dict[str, Any]]:
        """One row per parameter: name, type, default, bounds, choices, unit, group, doc."""
        rows = []
        for name in cls.names():
            p = cls.param[name]
            numeric = isinstance(p, Number | Integer)
            rows.append(
                {
                    "name": name,
                    "type": p.python,
                    "default": p.default,
                    "bounds": list(p.bounds) if numeric and p.bounds else None,
                    "choices": list(p.objects) if isinstance(p, Choice | Choices) else None,
                    "unit": p.unit or None,
                    "group": p.group,
                    "doc": p.doc,
                }
            )
        return rows

    @classmethod
    def cell(cls) -> str:
        """Source of the notebook's parameters cell: one literal assignment a line.

        The form `name: type = value  # doc [allowed]` is what `papermill --help-notebook` reads.
        """
        lines = []
        for name in cls.names():
            p = cls.param[name]
            value = repr(p.default).replace("'", '"')
            lines.append(f"{name}: {p.python} = {value}  # {p.doc} [{_cell_note(p)}]")
        return "\n".join(lines)

    def nearest_preset(self) -> tuple[str, list[str]]:
        """The preset with the fewest differences (seed aside), and the names that differ."""

        def differing(preset: str) -> list[str]:
            other = {**{n: self.param[n].default for n in self.names()}, **self.presets[preset]}
            return [n for n in self.names() if getattr(self, n) != other[n]]

        ordered = sorted(self.presets, key=lambda n: n != "default")
        best = min(ordered, key=lambda n: len([d for d in differing(n) if d != "seed"]))
        return best, differing(best)

    def _repr_html_(self) -> str:
        from workbench.theme import table_html

        preset, changed = self.nearest_preset()
        rows = []
        for name in self.names():
            value = f"<b>{getattr(self, name)}</b>{' (changed)' if name in changed else ''}"
            rows.append([name, value, self.param[name].unit, self.param[name].doc])
        differ = f"; changed: {', '.join(changed)}" if changed else ""
        table = table_html(["parameter", "value", "unit", "meaning"], rows)
        summary = f"Preset <b>{preset}</b>{differ} ({len(rows)} parameters)"
        return f"<details><summary>{summary}</summary>{table}</details>"


def _declaration_order(cls: type) -> list[str]:
    return [name for base in reversed(cls.__mro__) for name in vars(base)]


def _cell_note(p: Any) -> str:
    if isinstance(p, Choice | Choices):
        return " | ".join(p.objects)
    words = bounds_text(getattr(p, "bounds", None)).strip().removeprefix("from ")
    note = ", ".join(
        part for part in (words if not isinstance(p, Integers) else "", p.unit) if part
    )
    return note or p.kind


def _assigned(history: list[str], declared: list[str]) -> list[str]:
    """Names assigned in the parameters cell (it holds most declared names) and in papermill's."""
    names: dict[str, None] = {}
    for source in history:
        try:
            body = ast.parse(source).body
        except SyntaxError:  # a cell with magics is neither
            continue
        found = [t.id for n in body for t in _targets(n) if isinstance(t, ast.Name)]
        injected = source.lstrip().startswith("# Parameters")
        if injected or 2 * len(set(found) & set(declared)) > len(declared):
            names.update(dict.fromkeys(found))
    return list(names)


def _targets(node: ast.stmt) -> list[ast.expr]:
    if isinstance(node, ast.AnnAssign):
        return [node.target]
    return node.targets if isinstance(node, ast.Assign) else []


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
