# SPDX-License-Identifier: Apache-2.0
"""The authors' solvers and their SGD baseline once more, straight from their description (docs/method.md
section 3), in NumPy and without our library: what `--preset paper` and `paper-synthetic` must equal, and
heads that can be trained as they train theirs. Rows are samples; row i of x belongs to row i of y."""
import numpy as np


def unit(rows):
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def cosines(a, b):
    return unit(a) @ unit(b).T


def accuracy(s):
    """Share of rows whose nearest row of the other side is their partner, x to y."""
    return float(np.mean(s.argmax(1) == np.arange(len(s))))


def clip_weights(s, nu=1.0):
    """S = -dL/ds of L = mean log sum_j exp(s_ij - nu s_ii), both directions, temperature 1."""
    e, n = np.exp(s), len(s)
    return (nu * np.eye(n) - (e / e.sum(1, keepdims=True) + e / e.sum(0)) / 2) / n


# ---- linear: batches solved one by one, their maps averaged --------------------------------------


def factorise(m, r, power):
    u, d, v = np.linalg.svd(m, full_matrices=False)
    return u[:, :r] * d[:r] ** power, v[:r].T * d[:r] ** power


def linear(x, y, r, steps, nu=1.0, power=0.5, batch=None, seed=0):
    """F_x and F_y after `steps` steps from random factors. power .5: even split, 0: singular vectors
    alone. Batches are consecutive rows, a shorter rest is left out."""
    rng, batch = np.random.default_rng(seed), batch or len(x)
    f = [rng.uniform(-1, 1, (z.shape[1], r)) for z in (x, y)]
    for _ in range(steps):
        mean = 0
        for first in range(0, len(x) - batch + 1, batch):
            bx, by = x[first : first + batch], y[first : first + batch]
            c = bx.T @ clip_weights(cosines(bx @ f[0], by @ f[1]), nu) @ by
            a, b = factorise(c, r, power)
            mean = mean + a @ b.T
        f = factorise(mean / (len(x) // batch), r, power)
    return f


# ---- kernels: a model for each batch, their cosines averaged --------------------------------------


def kernel(name, a, b):
    """c is the cosine, clamped as there."""
    if name in ("rbf", "matern32"):
        d2 = ((a[:, None] - b[None]) ** 2).sum(-1)
        d = np.sqrt(3 * (d2 + 1e-12))
        return np.exp(-d2) if name == "rbf" else (1 + d) * np.exp(-d)
    c = np.clip(cosines(a, b), -1 + 1e-5, 1 - 1e-5)
    t = np.arccos(c)
    return {"arccos0": 1 - t / np.pi, "arccos1": (np.sin(t) + (np.pi - t) * c) / np.pi, "cosine": c,
            "expcos": np.exp(c)}[name]


def root(k, power):
    values, vectors = np.linalg.eigh(k + 1e-6 * np.eye(len(k)))
    values = np.maximum(values, 1e-300)
    scale = np.where((power < 0) & (values < 1e-10), 0, values**power)
    return (vectors * scale) @ vectors.T


def kernel_model(train, val, name, r=10, batch=30, steps=10, tolerance=1e-3):
    """A function of two sets of rows that gives their fused cosines."""
    parts = []
    for first in range(0, len(train[0]) - batch + 1, batch):
        rows = [z[first : first + batch] for z in train]
        k = [kernel(name, z, z) for z in rows]
        half, inverse = [root(m, 0.5) for m in k], [root(m, -0.5) for m in k]
        s, before = np.zeros((batch, batch)), None
        for _ in range(steps):
            u, v = factorise(half[0] @ clip_weights(s) @ half[1], r, 0.5)
            a, b = inverse[0] @ u, inverse[1] @ v
            s, now = cosines(k[0] @ a, k[1] @ b), a @ b.T
            if before is not None and np.linalg.norm(now - before) < tolerance:
                break
            before = now
        parts.append((rows, a, b))

    def one(part, x, y):
        rows, a, b = part
        return cosines(kernel(name, x, rows[0]) @ a, kernel(name, y, rows[1]) @ b)

    weights = np.array([accuracy(one(part, *val)) for part in parts])
    weights /= weights.sum()
    return lambda x, y: sum(w * one(part, x, y) for w, part in zip(weights, parts))


# ---- heads trained by Adam ------------------------------------------------------------------------


class Layer:
    """x W + b with AdamW; weights drawn as PyTorch draws those of nn.Linear."""

    def __init__(self, rng, d, r, bias=False):
        bound = d**-0.5
        self.w = [rng.uniform(-bound, bound, (d, r)).astype("f4")]
        if bias:
            self.w.append(rng.uniform(-bound, bound, r).astype("f4"))
        self.m, self.v = ([np.zeros_like(w) for w in self.w] for _ in range(2))

    def forward(self, x):
        self.x = x
        return x @ self.w[0] + (self.w[1] if len(self.w) > 1 else 0)

    def backward(self, g):
        self.g = [self.x.T @ g] + ([g.sum(0)] if len(self.w) > 1 else [])
        return g @ self.w[0].T

    def step(self, t, rate, decay):
        for k, g in enumerate(self.g):
            self.m[k] += 0.1 * (g - self.m[k])
            self.v[k] += 0.001 * (g * g - self.v[k])
            size = rate / (1 - 0.9**t)
            self.w[k] *= 1 - rate * decay
            self.w[k] -= size * self.m[k] / (np.sqrt(self.v[k] / (1 - 0.999**t)) + 1e-8)


class Head:
    """linear; tanh: tanh of a linear layer; mlp: a hidden layer of rectified units, then linear."""

    def __init__(self, rng, kind, d, r, hidden):
        self.kind = kind
        sizes = [(d, hidden, True), (hidden, r, False)] if kind == "mlp" else [(d, r, False)]
        self.layers = [Layer(rng, *size) for size in sizes]

    def __call__(self, x):
        out = self.layers[0].forward(x)
        if self.kind == "mlp":
            self.on = out > 0
            out = self.layers[1].forward(out * self.on)
        self.out = np.tanh(out) if self.kind == "tanh" else out
        return self.out

    def backward(self, g):
        g = g * (1 - self.out**2) if self.kind == "tanh" else g
        if self.kind == "mlp":
            g = self.layers[1].backward(g) * self.on
        self.layers[0].backward(g)

    def step(self, *how):
        for layer in self.layers:
            layer.step(*how)


def softmax(s):
    e = np.exp(s - s.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def train_heads(x, y, owner, kind, r, rate, batch, epochs, decay=0.0, temperature=1.0, cosine=False,
                hidden=256, seed=0, watch=None):
    """SGD-CLIP: symmetric cross-entropy of cosine/temperature on shuffled batches of pairs
    (x[owner[j]], y[j]); `cosine`: the rate falls to 0 as one. Calls watch(epoch, heads) after every
    epoch; True ends it."""
    rng = np.random.default_rng(seed)
    heads = [Head(rng, kind, z.shape[1], r, hidden) for z in (x, y)]
    t, steps = 0, epochs * -(-len(y) // batch)
    for epoch in range(1, epochs + 1):
        order = rng.permutation(len(y))
        for first in range(0, len(order), batch):
            rows = order[first : first + batch]
            raw = [heads[0](x[owner[rows]]), heads[1](y[rows])]
            length = [np.linalg.norm(z, axis=1, keepdims=True) for z in raw]
            z = [a / b for a, b in zip(raw, length)]
            s = z[0] @ z[1].T / temperature
            g = (softmax(s) + softmax(s.T).T - 2 * np.eye(len(rows), dtype="f4")) / 2
            g = (g / (len(rows) * temperature)).astype("f4")
            t += 1
            now = rate * (1 + np.cos(np.pi * t / steps)) / 2 if cosine else rate
            for k, pull in enumerate((g @ z[1], g.T @ z[0])):
                along = (pull * z[k]).sum(1, keepdims=True)
                heads[k].backward((pull - along * z[k]) / length[k])
                heads[k].step(t, now, decay)
        if watch and watch(epoch, heads):
            break
    return heads
