# SPDX-License-Identifier: Apache-2.0
"""Two halves of handwritten digits: which lower half belongs to which upper half?"""

import tempfile
from pathlib import Path

import unicon

data = Path(__file__).resolve().parents[2] / "data" / "digits"

# Rows can be arrays, tensors, or files, which the library reads itself.
# Preset fast is one closed form; see unicon.presets() for those that search for a better setting.
aligner = unicon.Aligner(preset="fast")
aligner.fit(data / "upper.train.npy", data / "lower.train.npy")
print(aligner.model_)

upper, lower = data / "upper.test.npy", data / "lower.test.npy"
found = aligner.evaluate(upper, lower, ci=True)["x_to_y"]
low, high = found["ci"]["hit@10"]
print(f"hit@10 {found['hit@10']:.3f} [{low:.3f}, {high:.3f}], "
      f"by chance {found['chance']['hit@10']:.3f}")

# The three lower halves that fit the first upper half best.
ids, scores = aligner.search(upper, lower, k=3)
print("row 0 finds rows", ids[0].tolist(), "with scores", [round(float(s), 3) for s in scores[0]])

# Rows with the same digit as pairs, instead of the halves of one image.
labels = [(data / f"label.{part}.txt") for part in ("train", "test")]
by_class = unicon.Aligner(preset="fast").fit(data / "upper.train.npy", data / "lower.train.npy",
                                labels=(labels[0], labels[0]))
found = by_class.evaluate(upper, lower, labels=(labels[1], labels[1]))["x_to_y"]
print(f"the same digit first: {found['hit@1']:.3f}, by chance {found['chance']['hit@1']:.3f}")

with tempfile.TemporaryDirectory() as folder:  # or a folder of your own
    aligner.save(Path(folder) / "digits.safetensors")
    again = unicon.Aligner.load(Path(folder) / "digits.safetensors")
assert (again.transform_x(upper) == aligner.transform_x(upper)).all()
print("saved and loaded", again.model_)
