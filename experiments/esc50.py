# SPDX-License-Identifier: Apache-2.0
"""Audio-title retrieval on ESC-50 features: five folds, one query per distinct title of the test
fold against the clips of that fold. Needs numpy and UNICON_DATA.

    UNICON_DATA=DIR python3 experiments/esc50.py [options of unicon fit ...]"""
import json
import os
import subprocess
import sys
import tempfile

try:
    import numpy as np
except ImportError:
    raise SystemExit("skipped: numpy is not installed")

UNICON = os.environ.get("UNICON", "build/unicon")


def command(*words):
    done = subprocess.run([UNICON, *words], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    return done.stdout


def write_part(folder, name, audio, text, pairs, rows):
    place = {row: i for i, row in enumerate(rows)}
    mine = [(place[a], t) for a, t in pairs if a in place]
    titles = sorted({t for _, t in mine})
    number = {t: i for i, t in enumerate(titles)}
    np.save(f"{folder}/a.{name}.npy", audio[rows])
    np.save(f"{folder}/t.{name}.npy", text[titles])
    with open(f"{folder}/p.{name}.tsv", "w") as out:
        out.writelines(f"{a}\t{number[t]}\n" for a, t in mine)
    return [f"{folder}/a.{name}.npy", f"{folder}/t.{name}.npy", "--pairs", f"{folder}/p.{name}.tsv"]


def main():
    data = os.path.join(os.environ.get("UNICON_DATA", ""), "esc50")
    if not os.path.exists(f"{data}/audio.npy"):
        raise SystemExit("skipped: set UNICON_DATA to the folder of the features")
    audio, text = np.load(f"{data}/audio.npy"), np.load(f"{data}/text.npy")
    pairs = [tuple(map(int, line.split()[:2])) for line in open(f"{data}/pairs.tsv") if line[0].isdigit()]
    fold = np.array([int(f[1]) for f in (line.rstrip("\n").split("\t") for line in open(f"{data}/audio.tsv"))
                     if f[1].isdigit()])
    names, found, seconds = ("hit@1", "hit@5", "hit@10"), [], 0
    with tempfile.TemporaryDirectory() as folder:
        for k in range(1, 6):
            train = write_part(folder, "train", audio, text, pairs, np.where(fold != k)[0].tolist())
            test = write_part(folder, "test", audio, text, pairs, np.where(fold == k)[0].tolist())
            model = f"{folder}/model.safetensors"
            seconds += json.loads(command("fit", *train, "-o", model, "--json", *sys.argv[1:]))["seconds"]
            result = json.loads(command("eval", model, *test, "--json"))["y_to_x"]
            found.append([result[n] for n in names])
    mean = np.mean(found, 0)
    print(f"{' '.join(sys.argv[1:]) or 'auto'}: title to audio " +
          " ".join(f"{n} {v:.3f}" for n, v in zip(names, mean)) + f", {seconds / 5:.1f} s a fit")


if __name__ == "__main__":
    main()
