# SPDX-License-Identifier: Apache-2.0
import unicon


def fast(**options):
    """An Aligner of one closed form, unless a preset is given."""
    return unicon.Aligner(**{"preset": "fast", **options})
