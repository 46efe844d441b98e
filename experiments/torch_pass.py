# SPDX-License-Identifier: Apache-2.0
"""The obvious chunked PyTorch code for C = X^T S Y of the clip loss, beside bench_pass.

    python3 experiments/torch_pass.py [--n 20000] [--d 512] [--r 128] [--chunk 1024]

Two passes over chunks of rows: log-sum-exp of rows and columns, then S times Y. One-to-one pairs,
float32, as many threads as given. Prints the best of three times and the peak of resident memory
beyond the data."""
import argparse
import resource
import time

try:
    import torch
except ImportError:
    raise SystemExit("skipped: PyTorch is not installed")


def weights_times_y(zx, zy, x, y, tau, chunk):
    n = zx.shape[0]
    row = torch.empty(n)
    column = torch.full((n,), -torch.inf)
    positive = (zx * zy).sum(1) / tau
    index = torch.arange(n)
    for at in range(0, n, chunk):
        s = zx[at:at + chunk] @ zy.T / tau
        s[torch.arange(s.shape[0]), index[at:at + chunk]] = -torch.inf
        row[at:at + chunk] = torch.logsumexp(s, 1)
        column = torch.logaddexp(column, torch.logsumexp(s, 0))
    log_rx = -torch.logaddexp(positive, row) - torch.log(torch.tensor(2.0 * n))
    log_ry = -torch.logaddexp(positive, column) - torch.log(torch.tensor(2.0 * n))
    c = torch.zeros(x.shape[1], y.shape[1])
    for at in range(0, n, chunk):
        s = zx[at:at + chunk] @ zy.T / tau
        w = -(torch.exp(s + log_rx[at:at + chunk, None]) + torch.exp(s + log_ry[None, :]))
        here = index[at:at + chunk]
        share = torch.exp(row[here] + log_rx[here]) + torch.exp(column[here] + log_ry[here])
        w[torch.arange(s.shape[0]), here] = share
        c += x[at:at + chunk].T @ (w @ y)
    return c


def main():
    p = argparse.ArgumentParser()
    for name, value in (("n", 20000), ("d", 512), ("r", 128), ("chunk", 1024), ("threads", 2)):
        p.add_argument("--" + name, type=int, default=value)
    a = p.parse_args()
    torch.set_num_threads(a.threads)
    torch.manual_seed(0)
    unit = torch.nn.functional.normalize
    x, y = unit(torch.randn(a.n, a.d)), unit(torch.randn(a.n, a.d))
    zx, zy = unit(torch.randn(a.n, a.r)), unit(torch.randn(a.n, a.r))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    best = float("inf")
    for _ in range(3):
        start = time.perf_counter()
        weights_times_y(zx, zy, x, y, 0.1, a.chunk)
        best = min(best, time.perf_counter() - start)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"torch {torch.__version__}, {a.threads} threads, n {a.n}, d {a.d}, r {a.r}, chunk {a.chunk}: "
          f"{best:.2f} s, {(peak - before) / 1024:.0f} MB beyond the data")


if __name__ == "__main__":
    main()
