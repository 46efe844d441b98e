# SPDX-License-Identifier: Apache-2.0
"""Devices: where their plugins are, and which there are."""

from __future__ import annotations

import ctypes
from typing import Any

from ._call import Call
from ._library import SCOPE_CONTEXT, Device, text


def devices(**options: Any) -> list[dict[str, Any]]:
    """Where fits can run, the CPU first: `name` for option device, `text` (what it is, or why it cannot
    be used), `usable`, and `chosen`, the one in force for these options (device, threads)."""
    with Call(options, SCOPE_CONTEXT) as call:
        count, room = ctypes.c_size_t(), 9
        found = (Device * room)()
        call("devices", found, room, ctypes.byref(count))
    return [{"name": text(one.name), "text": text(one.text), "usable": bool(one.usable),
             "chosen": bool(one.chosen)} for one in found[:min(room, count.value)]]
