# SPDX-License-Identifier: Apache-2.0
"""What plain torch takes on the same GPU for the stages that `cuda_check --time` times, at MSCOCO
size: 82 783 x 413 915 random rows, 512 -> 128, data on the device. Best of several runs.

    python experiments/torch_device.py
"""
import math
import time

import torch
import torch.nn.functional as F

dev = "cuda"
torch.manual_seed(0)
nx, ny, d, r, tau = 82783, 413915, 512, 128, 0.1


def clock(name, body, repeat=3):
    body()
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before, best = torch.cuda.memory_allocated(), 1e9
    for _ in range(repeat):
        start = time.perf_counter()
        body()
        torch.cuda.synchronize()
        best = min(best, time.perf_counter() - start)
    extra = (torch.cuda.max_memory_allocated() - before) / 1e6
    print(f"{name:<58} {1e3 * best:9.2f} ms  {extra:8.0f} MB extra", flush=True)


def tf32(on):
    torch.backends.cuda.matmul.allow_tf32 = on


x = F.normalize(torch.randn(nx, d, device=dev), dim=1)
y = F.normalize(torch.randn(ny, d, device=dev), dim=1)


def products():
    xc, yc = x - x.mean(0), y - y.mean(0)
    return xc.T @ xc, yc.T @ yc, xc.T @ yc.view(nx, 5, d).mean(1)


def fast():
    sx, sy, c = products()
    ex, vx = torch.linalg.eigh(sx.double() / nx)
    ey, vy = torch.linalg.eigh(sy.double() / ny)
    wx = vx / (ex.clamp(min=0) + 0.01 * ex[-1]).sqrt()
    wy = vy / (ey.clamp(min=0) + 0.01 * ey[-1]).sqrt()
    u, s, vh = torch.linalg.svd(wx.T @ (c.double() / nx) @ wy)
    a, b = (wx @ u[:, :r]).float(), (wy @ vh.T[:, :r]).float()
    return F.normalize((x - x.mean(0)) @ a, dim=1), F.normalize((y - y.mean(0)) @ b, dim=1)


for on in (True, False):
    tf32(on)
    word = "tf32" if on else "fp32"
    clock(f"products, {word}", products, 5)
    clock(f"fast: statistics to embeddings, {word}", fast, 3)

for n in (512, 2000):
    m = torch.randn(n, 2 * n, device=dev, dtype=torch.float64)
    m = m @ m.T
    clock(f"eigh {n} f64", lambda: torch.linalg.eigh(m))
    clock(f"cholesky {n} f64", lambda: torch.linalg.cholesky(m))
    if n == 512:
        clock("svd 512 f64", lambda: torch.linalg.svd(m))


def landmarks(m=2000):
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


for on in (True, False):
    tf32(on)
    clock(f"angular, 2000 landmarks, covariances and eigenvectors, {'tf32' if on else 'fp32'}",
          landmarks, 1)

tf32(True)
zx, zy = fast()


def exact(kind, cx=2048, cy=65536):
    """The clip pass in chunks: sums of rows and columns, then C (positives left out)."""
    dtype = torch.bfloat16 if kind == "bf16" else torch.float32
    a, b, yb = (zx / tau).to(dtype), zy.to(dtype), y.to(torch.bfloat16)
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
            e = (e * (wr[i : i + cx, None] + wc[None, j : j + cy])).to(torch.bfloat16)
            t += (e @ yb[j : j + cy]).float()
        c -= x[i : i + cx].T @ t
    return c


for kind in ("tf32", "bf16"):
    clock(f"exact clip pass in chunks, {kind} scores, bf16 weights", lambda: exact(kind), 1)

bank = zx[:4096]
clock("biases of y by 4096 rows, softmax 10, tf32", lambda: torch.cat(
    [torch.logsumexp(10 * (zy[j : j + 65536] @ bank.T), 1) for j in range(0, ny, 65536)]))

base = F.normalize(torch.randn(1000000, 256, device=dev), dim=1)
query = base[1000:11000]


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


for on in (False, True):
    tf32(on)
    clock(f"top 10 of 10 000 x 1M, r 256, {'tf32 (not exact)' if on else 'fp32'}", search)

hx, hy = torch.nn.Linear(d, r).to(dev), torch.nn.Linear(d, r).to(dev)
for size in (1024, 8192):
    opt = torch.optim.AdamW([*hx.parameters(), *hy.parameters()], 1e-3, fused=True)
    label = torch.arange(size, device=dev)

    def epoch():
        order = torch.randperm(nx, device=dev)
        for first in range(0, nx - size + 1, size):
            i = order[first : first + size]
            s = 14 * F.normalize(hx(x[i]), dim=1) @ F.normalize(hy(y[i * 5]), dim=1).T
            loss = (F.cross_entropy(s, label) + F.cross_entropy(s.T, label)) / 2
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()

    clock(f"SGD-CLIP head, one epoch (one caption), batch {size}", epoch, 2)
