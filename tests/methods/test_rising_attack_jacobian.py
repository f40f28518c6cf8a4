"""The adversarial Jacobian: finite differences, chunks, dtypes, untouched gradients, bad models."""

import pytest
import torch
from torch import nn

from workbench.methods.rising_attack import _checks, jacobian
from workbench.methods.rising_attack.jacobian import adversarial_jacobian, forward
from workbench.methods.rising_attack.ranking import (
    gaps,
    non_targets,
    random_targets,
    rank_matrix,
    row_classes,
)


def network(dtype=torch.float64, n_classes: int = 5) -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.GELU(), nn.AvgPool2d(2),
        nn.Flatten(), nn.Dropout(0.5), nn.Linear(36, n_classes),
    ).to(dtype).eval()  # fmt: skip


def images(n: int = 3, dtype=torch.float64) -> torch.Tensor:
    return torch.rand(n, 1, 6, 6, generator=torch.Generator().manual_seed(1)).to(dtype)


def rows_for(n_images: int, K: int = 2, n_classes: int = 5):
    targets = random_targets([0] * n_images, K, n_classes)
    return targets, row_classes(targets, non_targets(targets, n_classes))


def test_rows_are_finite_differences_of_the_gaps():
    model, x = network(), images()
    _, rows = rows_for(3)
    G = adversarial_jacobian(model, x, *rows)
    assert G.shape == (3, 4, 36)
    step = 1e-5
    for pixel in range(0, 36, 5):
        moved = torch.zeros(36, dtype=x.dtype)
        moved[pixel] = step
        moved = moved.view(1, 6, 6)
        change = gaps(forward(model, x + moved), *rows) - gaps(forward(model, x - moved), *rows)
        torch.testing.assert_close(G[:, :, pixel], change / (2 * step), rtol=1e-4, atol=1e-7)


def test_it_is_the_ranking_matrix_times_the_whole_jacobian():
    model, x = network(), images()
    targets, rows = rows_for(3)
    G = adversarial_jacobian(model, x, *rows)
    for i in range(3):
        J = torch.autograd.functional.jacobian(model, x[i : i + 1])[0].flatten(1)
        A = torch.from_numpy(rank_matrix(targets[i].tolist(), 5))
        torch.testing.assert_close(G[i], A @ J)


@pytest.mark.parametrize("chunk", [1, 3, 5, 7, 1000])
def test_chunks_change_nothing(chunk):
    model, x = network(), images()
    _, rows = rows_for(3)
    whole = adversarial_jacobian(model, x, *rows)
    torch.testing.assert_close(adversarial_jacobian(model, x, *rows, chunk=chunk), whole)
    torch.testing.assert_close(forward(model, x, chunk), forward(model, x))


def test_float32_agrees_and_keeps_its_type():
    _, rows = rows_for(3)
    G = adversarial_jacobian(network(torch.float32), images(dtype=torch.float32), *rows)
    assert G.dtype == torch.float32 and not G.requires_grad
    exact = adversarial_jacobian(network(), images(), *rows)
    torch.testing.assert_close(G.double(), exact, rtol=1e-4, atol=1e-5)


def test_weights_that_require_gradients_keep_theirs():
    model, x = network(), images()
    model(x).sum().backward()
    before = {name: p.grad.clone() for name, p in model.named_parameters()}
    _, rows = rows_for(3)
    with torch.no_grad():  # also inside code that switched gradients off
        adversarial_jacobian(model, x, *rows)
    for name, parameter in model.named_parameters():
        assert parameter.requires_grad and torch.equal(parameter.grad, before[name])
    assert x.grad is None


class Square(torch.autograd.Function):
    """A custom function of the old style, which torch.func cannot transform."""

    @staticmethod
    def forward(context, x):
        context.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(context, gradient):
        return 2 * context.saved_tensors[0] * gradient


class Custom(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function, self.linear = function, nn.Linear(36, 5).double()

    def forward(self, x):
        return self.linear(self.function(x.flatten(1)))


@pytest.mark.parametrize("chunk", [4, 256])
def test_custom_autograd_functions_take_the_plain_way(chunk, monkeypatch):
    torch.manual_seed(0)
    model, x = Custom(Square.apply), images()
    plain = Custom(torch.square)
    plain.load_state_dict(model.state_dict())
    _, rows = rows_for(3)
    expected = adversarial_jacobian(plain, x, *rows)
    torch.testing.assert_close(adversarial_jacobian(model, x, *rows, chunk=chunk), expected)
    assert model.linear.weight.grad is None
    torch.testing.assert_close(jacobian._by_expansion(plain, x, [tuple(r.T for r in rows)]),
                               expected.transpose(0, 1).view(4, 3, 1, 6, 6))  # fmt: skip


@pytest.mark.parametrize("function", [torch.round, lambda x: (x > 0.5).double(), torch.detach])
def test_a_model_without_a_gradient_has_a_zero_jacobian(function):
    _, rows = rows_for(3)
    G = adversarial_jacobian(Custom(function), images(), *rows)
    assert G.shape == (3, 4, 36) and not G.any()


def test_a_jacobian_beyond_the_memory_limit_says_what_to_lower(monkeypatch):
    # An entry is once there in the model's type, and twice in float64: 24 bytes for float64.
    monkeypatch.setattr(_checks, "MEMORY_LIMIT_BYTES", 4 * 36 * 24 - 1)
    _, rows = rows_for(3)
    with pytest.raises(
        MemoryError, match=r"4 rows x 36 pixels.*rivals \(about 3 rows fit\).*chunk"
    ):
        adversarial_jacobian(network(), images(), *rows)
    monkeypatch.setattr(_checks, "MEMORY_LIMIT_BYTES", 4 * 36 * 24)
    adversarial_jacobian(network(), images(), *rows)


def test_an_allocation_that_fails_says_what_to_lower(monkeypatch):
    def fails(*_):
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory")

    monkeypatch.setattr(jacobian, "_by_vmap", fails)
    _, rows = rows_for(3)
    with pytest.raises(MemoryError, match="lower chunk = 256, or keep fewer rows with rivals"):
        adversarial_jacobian(network(), images(), *rows)
