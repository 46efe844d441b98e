# SPDX-License-Identifier: Apache-2.0
"""The library's option table, read at run time: names, defaults and help are written in C, once."""

from __future__ import annotations

import difflib
import inspect
import os
import textwrap
from typing import Any, NamedTuple

from ._library import lib, text
from .errors import OptionError


class Option(NamedTuple):
    """One row of the option table."""

    name: str
    kind: str
    default: str
    words: tuple[str, ...]
    metavar: str
    group: str
    help: str
    low: float
    high: float
    scope: int


def _read() -> dict[str, Option]:
    table = {}
    for index in range(lib.unicon_option_count()):
        row = lib.unicon_option_at(index).contents
        words = tuple(word for word in text(row.words).split("|") if word)
        option = Option(text(row.name), text(row.kind), text(row.default_value), words,
                        text(row.metavar), text(row.group), text(row.help), row.low, row.high,
                        row.scope)
        table[option.name] = option
    return table


TABLE = _read()


def names_of(scope: int) -> list[str]:
    """Names of the options of a scope (or of several, as a sum), in table order."""
    return [option.name for option in TABLE.values() if option.scope & scope]


def unknown(name: str) -> OptionError:
    """The error for an option that does not exist, with the name that may have been meant."""
    near = difflib.get_close_matches(name, TABLE, 1)
    return OptionError(f'there is no option "{name}"' + (f'; did you mean "{near[0]}"?' if near else ""))


def as_text(value: Any) -> str:
    """A value as the library wants it. True and False are on and off."""
    if hasattr(value, "item") and getattr(value, "ndim", None) == 0:
        value = value.item()
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, (bytes, os.PathLike)):
        return os.fsdecode(value)
    return str(value)


def from_text(name: str, value: str) -> Any:
    """The other way: a number where the option is one and the text is no word of it."""
    option = TABLE[name]
    if value in option.words or option.kind not in ("integer", "real", "sided") or "," in value:
        return value
    return int(float(value)) if option.kind == "integer" else float(value)


def presets() -> dict[str, dict[str, str]]:
    """What each preset sets; "chosen": what it chooses on held-out pairs."""
    import ctypes

    found: dict[str, dict[str, str]] = {}
    for preset in TABLE["preset"].words:
        name, value = ctypes.c_char_p(), ctypes.c_char_p()
        found[preset] = {}
        while lib.unicon_preset_at(preset.encode(), len(found[preset]), ctypes.byref(name),
                                   ctypes.byref(value)):
            found[preset][text(name.value)] = text(value.value)
    return found


def _accepted(option: Option) -> str:
    parts = []
    if option.kind in ("text", "form"):
        parts.append("text" if option.kind == "text" else "text as softmax:10")
    elif option.kind == "bytes":
        parts.append("a size as 512M or a number of bytes")
    elif option.kind in ("integer", "real", "sided"):
        parts.append({"integer": "int", "real": "float", "sided": "float or A,B"}[option.kind])
    if option.words:
        parts.append("{" + ", ".join(option.words) + "}")
    return " or ".join(parts)


def describe(scope: int, chosen: bool = True) -> str:
    """The options of a scope as a docstring section, by group; `chosen`: the preset chooses some."""
    lines, settings = [], presets()[TABLE["preset"].default] if chosen else {}
    for name in names_of(scope):
        option = TABLE[name]
        usual = option.default or "not given"
        if settings.get(name) == "chosen":
            usual = "chosen by auto" + (f", else {usual}" if usual != "auto" else "")
        first = f"{name} : {_accepted(option)}, default {usual}"
        lines += textwrap.wrap(first, 96, subsequent_indent="        ", break_on_hyphens=False)
        lines += textwrap.wrap(option.help, 96, initial_indent="    ", subsequent_indent="    ",
                               break_on_hyphens=False)
    return "\n".join(lines)


def signature(scope: int) -> inspect.Signature:
    """A signature for __init__: self, and every option of the scope as a keyword, None as default
    (None: not given, so the preset's or the table's value holds)."""
    keyword = inspect.Parameter.KEYWORD_ONLY
    parameters = [inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)]
    parameters += [inspect.Parameter(name, keyword, default=None) for name in names_of(scope)]
    return inspect.Signature(parameters)
