"""D: a network written down in a few hundred bits, and read back; its bound counts those bits.

Fixed before the data: weights w0 and a random projection P (D, d) with entries N(0, 1/D), both from
`prior_seed`. Trained: theta (d,) in w = w0 + P theta, quantized to L levels with a learned step
(straight-through). The message is a string of bits; training error, length and bound are those of
the network that is decoded from it. What is chosen after the data are seen is paid for in bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil, log2

import numpy as np
import torch
from torch import Tensor

from workbench.steps import Steps, part, run

from . import _checks, bounds, networks
from .networks import Trained

STEP_BITS, STEP_LOW, STEP_HIGH = 8, 1e-3, 1e2  # of the grid of quantization steps
MENU_BITS = 6  # dimension and levels
MENU_D = (50, 100, 200)  # in the menu; another dimension costs FREE_BITS more
FREE_BITS = 9
MAX_D = 2**FREE_BITS - 1


def step_of(index: int) -> float:
    """The quantization step of an index 0..255, on a logarithmic grid."""
    return STEP_LOW * (STEP_HIGH / STEP_LOW) ** (index / (2**STEP_BITS - 1))


def step_index(step: float) -> int:
    """The index of the nearest step of the grid."""
    place = np.log(step / STEP_LOW) / np.log(STEP_HIGH / STEP_LOW) * (2**STEP_BITS - 1)
    return int(np.clip(round(place), 0, 2**STEP_BITS - 1))


def count_bits(d: int, levels: int) -> int:
    """Bits of the table of symbol counts: L - 1 numbers from 0 to d, packed as one."""
    return ceil((levels - 1) * log2(d + 1))


def gamma_code(value: int) -> str:
    """Elias' gamma code of an integer >= 1, a prefix code: 1, 010, 011, 00100 ..."""
    binary = f"{value:b}"
    return "0" * (len(binary) - 1) + binary


def offset_code(offset: int) -> str:
    """A signed integer as a prefix code; 0 costs one bit."""
    return gamma_code(2 * offset if offset > 0 else 1 - 2 * offset)


@dataclass(frozen=True)
class Message:
    """A network as bits, and where they go.

    parts: bits of the header (dimension, levels, seed), step, counts and symbols.
    """

    bits: str
    parts: dict[str, int]

    def __len__(self) -> int:
        return len(self.bits)


def encode(symbols: np.ndarray, levels: int, step: int, seed_offset: int = 0) -> Message:
    """The message of symbols (d,) in 0..levels - 1 and a step index.

    seed_offset: how far the seed of the projection is from the one fixed before the data.
    The symbols are arithmetic-coded with their own counts, in exact integers: ceil(d H) + 1 bits.
    """
    levels, d = _checks.levels(levels), len(symbols)
    _checks.count("d", d, 1, MAX_D)
    _checks.count("step", step, 0, 2**STEP_BITS - 1)
    counts = np.bincount(symbols, minlength=levels).tolist()
    place = MENU_D.index(d) if d in MENU_D else len(MENU_D)
    header = f"{place * 16 + (levels - 3) // 2:0{MENU_BITS}b}"
    if place == len(MENU_D):
        header += f"{d:0{FREE_BITS}b}"
    header += offset_code(seed_offset)
    table = 0
    for number in counts[:-1]:
        table = table * (d + 1) + number
    pieces = {
        "header": header,
        "step": f"{step:0{STEP_BITS}b}",
        "counts": f"{table:0{count_bits(d, levels)}b}",
        "symbols": _arithmetic(symbols.tolist(), counts),
    }
    return Message("".join(pieces.values()), {name: len(text) for name, text in pieces.items()})


def _arithmetic(symbols: list[int], counts: list[int]) -> str:
    d, starts = sum(counts), np.concatenate([[0], np.cumsum(counts)]).tolist()
    low, width = 0, 1  # the interval, in units of d^-i after i symbols
    for symbol in symbols:
        low, width = low * d + width * starts[symbol], width * counts[symbol]
    # ceil(-log2(width / d^k)) + 1 bits name a dyadic interval inside, exactly.
    whole = d ** len(symbols)
    length = (-(-whole // width) - 1).bit_length() + 1
    code = -(-(low << length) // whole)
    return f"{code:0{length}b}"


@dataclass(frozen=True)
class Decoded:
    """What a message says: symbols (d,), levels, step index and the offset of the seed."""

    symbols: np.ndarray
    levels: int
    step: int
    seed_offset: int

    @property
    def theta(self) -> np.ndarray:
        """Quantized coordinates (d,)."""
        return step_of(self.step) * (self.symbols - (self.levels - 1) // 2)


def decode(bits: str) -> Decoded:
    """Read a message back; ValueError when it is not one."""
    if not bits or set(bits) - {"0", "1"}:
        raise ValueError("bits must be a string of 0 and 1")
    try:
        at = MENU_BITS
        place, rest = divmod(int(bits[:at], 2), 16)
        levels = 2 * rest + 3
        if place == len(MENU_D):
            d, at = int(bits[at : at + FREE_BITS], 2), at + FREE_BITS
        else:
            d = MENU_D[place]
        zeros = bits.index("1", at) - at
        value, at = int(bits[at + zeros : at + 2 * zeros + 1], 2), at + 2 * zeros + 1
        offset = value // 2 if value % 2 == 0 else (1 - value) // 2
        step, at = int(bits[at : at + STEP_BITS], 2), at + STEP_BITS
        table, at = int(bits[at : at + count_bits(d, levels)], 2), at + count_bits(d, levels)
        code = bits[at:]
        value = Fraction(int(code, 2), 1 << len(code))
    except ValueError:
        raise ValueError(f"a message of {len(bits)} bits is cut off") from None
    counts = []
    for _ in range(levels - 1):
        table, number = divmod(table, d + 1)
        counts.insert(0, number)
    counts.append(d - sum(counts))
    if counts[-1] < 0 or table:
        raise ValueError("not a message: its counts do not add up")
    starts = np.concatenate([[0], np.cumsum(counts)])
    symbols = np.zeros(d, int)
    # Exact integers: `value` is code / 2^length, rescaled to the interval of each symbol.
    top, whole = value.numerator, value.denominator
    for i in range(d):
        slot = top * d // whole
        symbols[i] = int(np.searchsorted(starts, slot, side="right") - 1)
        top = top * d - int(starts[symbols[i]]) * whole
        whole = whole * counts[symbols[i]]
    return Decoded(symbols, levels, step, offset)


def projection(D: int, d: int, seed: int) -> Tensor:
    """The random projection (D, d) of a seed, entries N(0, 1/D)."""
    generator = torch.Generator().manual_seed(7_000_003 * int(seed) + 11)
    return torch.randn(D, d, generator=generator) / D**0.5


def layer_sizes(width: int, inputs: int = 64, classes: int = 10) -> tuple[int, ...]:
    """One hidden layer, or none: width 0 is softmax regression."""
    return (inputs, width, classes) if width else (inputs, classes)


@dataclass
class Compressed:
    """Networks as they are stored, one row a network; errors are of the decoded ones.

    d: of each, (B,). plain: training error before quantization. train, test: of the decoded
    network, test on labels drawn like those of training, which is what a bound speaks of;
    test_true on true labels. bits: of the whole message. parts: where they go. bounds: Hoeffding,
    kl, exact.
    """

    width: int
    d: np.ndarray
    levels: int
    n: int
    plain: np.ndarray
    train: np.ndarray
    test: np.ndarray
    test_true: np.ndarray
    bits: np.ndarray
    parts: list[dict[str, int]]
    bounds: list[bounds.Bounds]
    messages: list[Message] = field(default_factory=list)
    curves: list[tuple[int, np.ndarray]] = field(default_factory=list)

    def of(self, name: str) -> np.ndarray:
        """One kind of bound: "hoeffding", "kl" or "exact", (B,)."""
        return np.array([getattr(b, name) for b in self.bounds])

    def rows(self, which: Sequence[int]) -> Compressed:
        """Some of the networks, also while they train."""
        which = list(which)
        arrays = (self.plain, self.train, self.test, self.test_true, self.bits)
        lists = (self.parts, self.bounds, self.messages)
        plain, train, test, test_true, bits = (v[which] if len(v) else v for v in arrays)
        parts, found, messages = ([v[i] for i in which] if v else [] for v in lists)
        return Compressed(
            self.width, self.d[which], self.levels, self.n, plain, train, test, test_true, bits,
            parts, found, messages, [(step, v[which]) for step, v in self.curves],
        )  # fmt: skip


def compress_steps(
    x: np.ndarray,
    labels: np.ndarray,
    test_x: np.ndarray,
    test_labels: np.ndarray,
    *,
    width: int,
    d: int | Sequence[int],
    levels: int,
    seeds: Sequence[int],
    true_test_labels: np.ndarray | None = None,
    prior_seeds: Sequence[int] | None = None,
    delta: float = 0.05,
    more_bits: int = 0,
    steps: tuple[int, int] = (400, 600),
    lr: float = 0.3,
) -> Steps[Compressed]:
    """Train, quantize, write down and decode B networks in one batch; `Compressed` at the end.

    x: (B, n, inputs), labels: (B, n) as trained on, tests likewise, drawn as the labels of training
    are. true_test_labels: where those are corrupted. seeds: of w0 and P of each. d: of all, or of
    each: projections are padded with columns of zeros, whose coordinates then stay zero.
    prior_seeds: what was fixed before the data (None: the same); another seed costs bits.
    more_bits: for further choices that saw the data, such as the best of four widths: 2.
    The learning rate and numbers of steps need no bits: they are not in the message.
    """
    levels = _checks.levels(levels)
    delta = _checks.number("delta", delta, 0, 1, open_ends=True)
    classes = int(max(labels.max(), test_labels.max())) + 1
    sizes = layer_sizes(_checks.count("width", width, 0), x.shape[-1], max(classes, 2))
    D = networks.count(sizes)
    each_d = np.broadcast_to(d, len(seeds))
    if (most := int(each_d.max())) > D:
        raise ValueError(f"d = {most}; allowed are at most {D}, the number of parameters")
    for value in each_d.tolist():
        _checks.count("d", value, 1, MAX_D)
    prior_seeds = list(seeds if prior_seeds is None else prior_seeds)
    X, Y = networks.tensor(x), networks.tensor(labels)
    w0 = networks.initial(sizes, seeds)
    P = torch.zeros(len(seeds), most, D)  # transposed: a product with a batch of them is faster
    for own, own_d, seed in zip(P, each_d.tolist(), seeds, strict=True):
        own[:own_d] = projection(D, own_d, seed).T
    B, half = len(seeds), (levels - 1) // 2

    def weights(theta: Tensor, rows: Tensor) -> Tensor:
        own = P if len(rows) == B else P[rows]
        return w0[rows] + torch.bmm(theta[:, None], own)[:, 0]

    fit = networks.supervised(X, Y, sizes)

    def plain_loss(theta: Tensor, rows: Tensor, step: int) -> Tensor:
        return fit(weights(theta, rows), rows, step)

    share = steps[0] / sum(steps)
    trained: Trained = yield from part(
        networks.train_steps(
            torch.zeros(B, most), plain_loss, steps=steps[0], lr=lr, cosine=True, title="training"
        ), 0, share, data=lambda t: _partial(t, width, each_d, levels, x.shape[1]),
    )  # fmt: skip
    theta = trained.w
    plain = networks.errors(weights(theta, torch.arange(B)), X, Y, sizes)

    # The step starts where L levels cover two standard deviations, and is learned with theta.
    spread = torch.stack([row[:own_d].std() for row, own_d in zip(theta, each_d, strict=True)])
    start = (2 * spread / max(half, 1)).clamp(STEP_LOW, STEP_HIGH).log()[:, None]

    def quantized(packed: Tensor) -> Tensor:
        step = packed[:, :1].exp()
        scaled = packed[:, 1:] / step
        rounded = scaled.round().clamp(-half, half)
        inside = scaled.clamp(-half, half)
        return step * (inside + (rounded - inside).detach())

    def quantized_loss(packed: Tensor, rows: Tensor, step: int) -> Tensor:
        return fit(weights(quantized(packed), rows), rows, step)

    tuned: Trained = yield from part(
        networks.train_steps(
            torch.cat([start, theta], 1), quantized_loss, steps=steps[1], lr=lr / 3, cosine=True,
            title="quantizing",
        ), share, 1, data=lambda t: _partial(t, width, each_d, levels, x.shape[1]),
    )  # fmt: skip
    messages = []
    for b in range(B):
        # Rounded by the learned step, as trained: many coordinates sit at the edge of two levels.
        index = step_index(float(tuned.w[b, 0].exp()))
        own = tuned.w[b, 1 : 1 + int(each_d[b])]
        scaled = (own / tuned.w[b, 0].exp()).round().numpy()
        symbols = np.clip(scaled, -half, half).astype(int) + half
        messages.append(encode(symbols, levels, index, seeds[b] - prior_seeds[b]))
    w = torch.cat([network_of(m.bits, s, sizes)
                   for m, s in zip(messages, prior_seeds, strict=True)])  # fmt: skip
    train = networks.errors(w, X, Y, sizes)
    T = networks.tensor(test_x)
    test = networks.errors(w, T, networks.tensor(test_labels), sizes)
    truth = test_labels if true_test_labels is None else true_test_labels
    found = Compressed(
        width, each_d, levels, x.shape[1], plain, train, test,
        networks.errors(w, T, networks.tensor(truth), sizes),
        np.array([len(m) + more_bits for m in messages]),
        [m.parts | ({"choices": more_bits} if more_bits else {}) for m in messages], [], messages,
        trained.curves + [(s + steps[0], v) for s, v in tuned.curves],
    )  # fmt: skip
    found.bounds = [
        bounds.occam(float(e), found.n, bounds.complexity_of_code(float(k)), delta)
        for e, k in zip(train, found.bits, strict=True)
    ]
    return found


def _partial(trained: Trained, width: int, d: np.ndarray, levels: int, n: int) -> Compressed:
    return Compressed(width, d, levels, n, *(np.zeros(0) for _ in range(5)), [], [],
                      curves=list(trained.curves))  # fmt: skip


def network_of(bits: str, prior_seed: int, sizes: Sequence[int]) -> Tensor:
    """The weights (1, D) that a message means to who knows the prior seed and the layers."""
    message = decode(bits)
    seed = prior_seed + message.seed_offset
    theta = networks.tensor(message.theta)
    w0 = networks.initial(sizes, [seed])
    return w0 + (projection(networks.count(sizes), len(theta), seed) @ theta)[None]


class CompressedClassifier:
    """A classifier stored in a message of a few hundred bits, with a bound on its risk.

    prior_seed fixes w0 and P and must be given before `fit`; `fit(X, y, seed=...)` with another
    seed is allowed, and its bits are added. `more_bits` pays for other choices that saw the data.
    After `fit`: message_, bits_, bound_ (three of them), train_error_.
    """

    def __init__(
        self,
        prior_seed: int = 0,
        width: int = 64,
        d: int = 100,
        levels: int = 9,
        delta: float = 0.05,
        more_bits: int = 0,
    ):
        self.prior_seed = _checks.count("prior_seed", prior_seed, 0)
        self.width = _checks.count("width", width, 0)
        self.d = _checks.count("d", d, 1, MAX_D)
        self.levels = _checks.levels(levels)
        self.delta = _checks.number("delta", delta, 0, 1, open_ends=True)
        self.more_bits = _checks.count("more_bits", more_bits, 0)

    def fit(self, X: np.ndarray, y: np.ndarray, seed: int | None = None, **options):
        """Fit to X (n, inputs) and y (n,) whole numbers from 0; returns self."""
        seed = self.prior_seed if seed is None else _checks.count("seed", seed, 0)
        x, y = np.asarray(X, float), np.asarray(y).astype(int)
        self.classes_ = np.arange(max(int(y.max()) + 1, 2))
        self.sizes_ = layer_sizes(self.width, x.shape[1], len(self.classes_))
        found = run(compress_steps(
            x[None], y[None], x[None, :1], y[None, :1], width=self.width, d=self.d,
            levels=self.levels, seeds=[seed], prior_seeds=[self.prior_seed], delta=self.delta,
            more_bits=self.more_bits, **options,
        ))  # fmt: skip
        self.message_, self.bits_ = found.messages[0], int(found.bits[0])
        self.train_error_, self.bound_ = float(found.train[0]), found.bounds[0]
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Classes (n,), from the network decoded from the message."""
        w = network_of(self.message_.bits, self.prior_seed, self.sizes_)
        with torch.no_grad():
            logits = networks.forward(w, networks.tensor(np.asarray(X, float)), self.sizes_)
        return logits[0].argmax(1).numpy()
