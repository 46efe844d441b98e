# SPDX-License-Identifier: Apache-2.0
"""Rows as seen through a model, and how their scores are balanced."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, NamedTuple, Optional

from ._call import Call
from ._library import FORMS, SIDES, View, lib
from ._rows import Matrix, open_rows
from .errors import ArgumentError

if TYPE_CHECKING:
    from .model import Model


class Balance(NamedTuple):
    """What a caller says about balance: how, and embedded rows instead of the model's banks."""

    how: Any = None
    bank_x: Matrix = None
    bank_y: Matrix = None

    def is_given(self) -> bool:
        return any(value is not None for value in self)

    def open(self, call: Call, model: Optional[Model],
             always: bool = False) -> Optional[ctypes.c_void_p]:
        """None: nothing is given, so that it is as the model says (`always`: that, copied)."""
        if not always and not self.is_given():
            return None
        if self.how is not None:
            call.set("balance", self.how)
        banks = [None if rows is None else open_rows(call, name, rows)
                 for name, rows in (("bank_x", self.bank_x), ("bank_y", self.bank_y))]
        return call.make("balance_create", lib.unicon_balance_destroy, model and model.pointer,
                         call.options, *banks)


def side_number(side: str) -> int:
    if side not in SIDES:
        raise ArgumentError(f"side is {side!r}; accepted: \"x\" or \"y\"")
    return SIDES[side]


def form_number(form: str) -> int:
    if form not in FORMS:
        raise ArgumentError(f"form is {form!r}; accepted: " + ", ".join(FORMS))
    return FORMS[form]


def open_view(call: Call, name: str, rows: Matrix, model: Optional[Model], side: str,
              balance: Optional[ctypes.c_void_p] = None) -> View:
    return View(open_rows(call, name, rows), model and model.pointer, balance, side_number(side))


def open_vectors(call: Call, base: Matrix, model: Optional[Model], rank: int, side: str,
                 balance: Balance) -> View:
    """Embedded rows to search in: vectors, which are balanced here, or rows of form "index"."""
    view = open_view(call, "base", base, None, side)
    if lib.unicon_rows_width(view.rows) != rank + 1:
        view.balance = balance.open(call, model, always=model is not None)
    elif balance.is_given():
        raise ArgumentError(f"base has {rank + 1} columns, the last of them its biases, so balance "
                            "and banks have no effect; give the other columns alone")
    else:
        view.form = FORMS["index"]
    return view


def count(view: View) -> int:
    return int(lib.unicon_rows_count(view.rows))
