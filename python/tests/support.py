# SPDX-License-Identifier: Apache-2.0
import unicon


def fast(**options):
    """An Aligner that makes no choices of its own, unless a preset is given."""
    return unicon.Aligner(**{"preset": "fast", **options})
