"""Adam without torch's optimizer classes takes the same steps, and is ready at once."""

import subprocess
import sys

import pytest
import torch

from workbench.numerics.optimizers import Adam


@pytest.mark.parametrize("weight_decay", [0.0, 0.1])
def test_steps_are_those_of_torch(weight_decay):
    target = torch.linspace(-1, 1, 12).reshape(3, 4)
    found = []
    for make in (Adam, torch.optim.AdamW):
        torch.manual_seed(0)
        used, unused = (torch.nn.Parameter(torch.randn(3, 4)) for _ in range(2))
        optimizer = make([used, unused], 0.05, weight_decay=weight_decay)
        for _ in range(20):
            optimizer.zero_grad()
            ((used - target) ** 2).sum().backward()
            optimizer.step()
        found.append((used.detach(), unused.detach()))
    for own, theirs in zip(*found, strict=True):
        torch.testing.assert_close(own, theirs)


def test_after_a_reset_it_starts_anew_with_the_present_rate():
    parameter = torch.nn.Parameter(torch.tensor([5.0]))
    optimizer = Adam([parameter], 0.1)
    for rate in (0.1, 0.3):
        optimizer.lr, before = rate, parameter.item()
        optimizer.zero_grad()
        (2 * parameter).sum().backward()
        optimizer.step()
        assert before - parameter.item() == pytest.approx(rate, rel=1e-5)  # first steps are lr long
        optimizer.reset()


def test_nothing_to_train_is_an_error():
    with pytest.raises(ValueError, match="nothing that requires gradients"):
        Adam([torch.zeros(3)], 0.1)


def test_it_does_not_wait_for_the_compiler():
    code = (
        "import sys, torch; from workbench.numerics.optimizers import Adam\n"
        "p = torch.nn.Parameter(torch.ones(2)); a = Adam([p], 0.1); p.sum().backward(); a.step()\n"
        "sys.exit('torch._dynamo' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
