# SPDX-License-Identifier: Apache-2.0
"""What plain torch takes for the stages of `bench/bench_device`, under the same names: random unit rows
that are on the device already, best of several runs in milliseconds.

    python experiments/torch_device.py [--size small|mscoco] [--device cuda] > torch.txt
    build/bench/bench_device --size mscoco > bench.txt
    python experiments/beside.py bench.txt torch.txt
"""
import argparse
import math
import time

import torch
import torch.nn.functional as F

SIZES = {  # x, y, d, r, landmarks, bank, queries, base, width, eigen: as in bench/bench_device.c
    "small": (1000, 3000, 64, 32, 150, 256, 200, 20000, 64, 96),
    "mscoco": (82783, 413915, 512, 128, 2000, 4096, 10000, 1000000, 256, 2000),
}
COLUMNS = ("torch fp32", "torch tf32", "torch bf16", "MB extra")
parser = argparse.ArgumentParser()
parser.add_argument("--size", choices=SIZES, default="mscoco")
parser.add_argument("--device", default="cuda")
given = parser.parse_args()
dev, on_gpu = given.device, given.device.startswith("cuda")
nx, ny, d, r, marks, bank_rows, queries, base_rows, width, eigen = SIZES[given.size]
tau = 0.1
torch.manual_seed(0)


def wait():
    if on_gpu:
        torch.cuda.synchronize()


def clock(body, repeat=3):
    """Milliseconds, and megabytes beyond what was there."""
    body()
    wait()
    before, best = 0, 1e9
    if on_gpu:
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
    for _ in range(repeat):
        start = time.perf_counter()
        body()
        wait()
        best = min(best, time.perf_counter() - start)
    extra = (torch.cuda.max_memory_allocated() - before) / 1e6 if on_gpu else math.nan
    return 1e3 * best, extra


def line(name, repeat=3, **bodies):
    """A stage: one body for each column it has, fp32, tf32 or bf16."""
    found, extra = {}, math.nan
    for kind, body in bodies.items():
        torch.backends.cuda.matmul.allow_tf32 = kind != "fp32"
        found["torch " + kind], extra = clock(body, repeat)
    found["MB extra"] = extra
    cells = (f"{found[c]:12.2f}" if not math.isnan(found.get(c, math.nan)) else f"{'-':>12}" for c in COLUMNS)
    print(f"{name:<58}  " + "  ".join(cells), flush=True)


def unit(rows, columns):
    return F.normalize(torch.randn(rows, columns, device=dev), dim=1)


where = torch.cuda.get_device_name() if on_gpu else dev
print(f"torch {torch.__version__} on {where}; {nx} x {ny} rows, d {d}, r {r}; data on the device")
print(f"{'stage, ms':<58}  " + "  ".join(f"{c:>12}" for c in COLUMNS))
x, y = unit(nx, d), unit(ny, d)


def products():
    xc, yc = x - x.mean(0), y - y.mean(0)
    return xc.T @ xc, yc.T @ yc, xc.T @ yc.view(nx, ny // nx, d).mean(1)


def fast():
    sx, sy, c = products()
    ex, vx = torch.linalg.eigh(sx.double() / nx)
    ey, vy = torch.linalg.eigh(sy.double() / ny)
    wx = vx / (ex.clamp(min=0) + 0.01 * ex[-1]).sqrt()
    wy = vy / (ey.clamp(min=0) + 0.01 * ey[-1]).sqrt()
    u, s, vh = torch.linalg.svd(wx.T @ (c.double() / nx) @ wy)
    a, b = (wx @ u[:, :r]).float(), (wy @ vh.T[:, :r]).float()
    return F.normalize((x - x.mean(0)) @ a, dim=1), F.normalize((y - y.mean(0)) @ b, dim=1)


def angular(m=marks):
    for z in (x, y):
        points = z[:m]

        def kernel(a):
            c = (a @ points.T).clamp(-1, 1)
            theta = torch.acos(c)
            return (torch.sin(theta) + (math.pi - theta) * c) / math.pi

        ridge = 1e-6 * torch.eye(m, device=dev)
        w = torch.linalg.inv(torch.linalg.cholesky(kernel(points).double() + ridge)).T.float()
        g = torch.zeros(m, m, device=dev)
        for j in range(0, len(z), 32768):
            p = kernel(z[j : j + 32768]) @ w
            g += p.T @ p
        torch.linalg.eigh(g.double())


def clip(scores, weights, cx=2048, cy=65536):
    """The pass in chunks: sums of rows and columns, then C (positives left out)."""
    a, b, yb = (zx / tau).to(scores), zy.to(scores), y.to(weights)
    rows, cols = torch.zeros(nx, device=dev), torch.zeros(ny, device=dev)
    for i in range(0, nx, cx):
        for j in range(0, ny, cy):
            e = torch.exp((a[i : i + cx] @ b[j : j + cy].T).float() - 1 / tau)
            rows[i : i + cx] += e.sum(1)
            cols[j : j + cy] += e.sum(0)
    c, wr, wc = torch.zeros(d, d, device=dev), 1 / rows, 1 / cols
    for i in range(0, nx, cx):
        t = torch.zeros(len(a[i : i + cx]), d, device=dev)
        for j in range(0, ny, cy):
            e = torch.exp((a[i : i + cx] @ b[j : j + cy].T).float() - 1 / tau)
            e = (e * (wr[i : i + cx, None] + wc[None, j : j + cy])).to(weights)
            t += (e @ yb[j : j + cy]).float()
        c -= x[i : i + cx].T @ t
    return c


def biases():
    return torch.cat([torch.logsumexp(10 * (zy[j : j + 65536] @ bank.T), 1) for j in range(0, ny, 65536)])


def search():
    best, ids = None, None
    for j in range(0, len(base), 131072):
        v, i = (query @ base[j : j + 131072].T).topk(10, dim=1)
        i = i + j
        if best is not None:
            v, i = torch.cat([best, v], 1), torch.cat([ids, i], 1)
            v, at = v.topk(10, dim=1)
            i = i.gather(1, at)
        best, ids = v, i
    return best, ids


def epoch(size):
    """Of an SGD-CLIP head, one caption of each row."""
    hx, hy = torch.nn.Linear(d, r).to(dev), torch.nn.Linear(d, r).to(dev)
    step = torch.optim.AdamW([*hx.parameters(), *hy.parameters()], 1e-3, fused=on_gpu)
    label = torch.arange(size, device=dev)

    def run():
        order = torch.randperm(nx, device=dev)
        for first in range(0, nx - size + 1, size):
            i = order[first : first + size]
            s = 14 * F.normalize(hx(x[i]), dim=1) @ F.normalize(hy(y[i * (ny // nx)]), dim=1).T
            loss = (F.cross_entropy(s, label) + F.cross_entropy(s.T, label)) / 2
            step.zero_grad(set_to_none=True)
            loss.backward()
            step.step()

    return run


line("products", 5, fp32=products, tf32=products)
line("fast: statistics to embeddings", fp32=fast, tf32=fast)
line(f"angular, {marks} landmarks, covariances and eigenvectors", 1, fp32=angular, tf32=angular)
zx, zy = fast()
line("exact clip pass", 1, fp32=lambda: clip(torch.float32, torch.float32),
     tf32=lambda: clip(torch.float32, torch.float32))
line("exact clip pass, reduced", 1, tf32=lambda: clip(torch.float32, torch.bfloat16),
     bf16=lambda: clip(torch.bfloat16, torch.bfloat16))
bank = zx[:bank_rows]
line(f"biases of y by {bank_rows} rows, softmax 10", fp32=biases, tf32=biases)
base = unit(base_rows, width)
query = base[:queries]
line(f"top 10 of {queries} x {base_rows}, r {width}", fp32=search, tf32=search)  # tf32: not exact
for n in sorted({min(512, eigen), eigen}):
    m = torch.randn(n, n, device=dev, dtype=torch.float64)
    line(f"eigh {n} f64", fp32=lambda: torch.linalg.eigh(m + m.T))
    line(f"svd {n} f64", fp32=lambda: torch.linalg.svd(m))
for size in (1024, 8192):
    if size <= nx:
        line(f"SGD-CLIP head, one epoch (one caption), batch {size}", 2, tf32=epoch(size))
