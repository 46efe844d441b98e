# SPDX-License-Identifier: Apache-2.0
"""Any engine that can add can fit: here Ray, in a few lines."""

import unicon

try:
    import ray
except ImportError:
    raise SystemExit(print("skipped: Ray is not installed (pip install ray)"))

x, y, _ = unicon.synth("linear", 3000)


@ray.remote
def part(rows):
    return unicon.Stats(threads=1).update(x[rows], y[rows])  # on a cluster: read the shard here


ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
parts = [part.remote(slice(start, start + 500)) for start in range(0, 3000, 500)]
total = sum(ray.get(parts))  # statistics travel, rows do not
print(total, total.fit(preset="fast", rank=10))
ray.shutdown()
