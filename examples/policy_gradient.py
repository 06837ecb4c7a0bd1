"""Policy gradient (REINFORCE) that learns to balance a pole on a cart; the environment is written here and steps many carts at once."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from _common import Progress, finish, parse_options, plot_losses
from matplotlib.figure import Figure
from torch import Tensor, nn


class CartPole:
    """Carts with a pole each (Barto, Sutton and Anderson 1983). A state is place, speed, angle and angular speed, `(N, 4)`.

    An action, 0 or 1, pushes the cart left or right for 20 ms. A cart is done when it is 2.4 m away or its pole leans by 12 degrees.
    """

    gravity, cart_mass, pole_mass, half_length, force, interval = 9.8, 1.0, 0.1, 0.5, 10.0, 0.02

    def __init__(self, count: int) -> None:
        self.state = torch.rand(count, 4) * 0.1 - 0.05

    def step(self, actions: Tensor) -> Tensor:
        """Pushes every cart; True where it still stands."""
        x, speed, angle, turn = self.state.unbind(dim=1)
        push = self.force * (2.0 * actions - 1.0)
        mass = self.cart_mass + self.pole_mass
        sine, cosine = angle.sin(), angle.cos()
        swing = (push + self.pole_mass * self.half_length * turn.square() * sine) / mass
        lever = self.half_length * (4.0 / 3.0 - self.pole_mass * cosine.square() / mass)
        angular = (self.gravity * sine - cosine * swing) / lever
        linear = swing - self.pole_mass * self.half_length * angular * cosine / mass
        change = torch.stack([speed, linear, turn, angular], dim=1)
        self.state = self.state + self.interval * change
        return (self.state[:, 0].abs() < 2.4) & (self.state[:, 2].abs() < math.radians(12))


def make_policy() -> nn.Sequential:
    """Logits of the two actions, `(N, 2)`, of states `(N, 4)`."""
    return nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 2))


def play(policy: nn.Module, carts: int, longest: int) -> tuple[Tensor, Tensor, Tensor]:
    """A game of every cart: the logarithm of the probability of each action taken, who stood before it, and the states, `(T, N)` and `(T, N, 4)`."""
    environment = CartPole(carts)
    standing = torch.ones(carts, dtype=torch.bool)
    logarithms, alive, states = [], [], []
    for _ in range(longest):
        states.append(environment.state)
        alive.append(standing)
        log_probabilities = F.log_softmax(policy(environment.state), dim=1)
        actions = torch.multinomial(log_probabilities.detach().exp(), num_samples=1)
        logarithms.append(log_probabilities.gather(1, actions).squeeze(1))
        standing = standing & environment.step(actions.squeeze(1))
        if not standing.any():
            break
    return torch.stack(logarithms), torch.stack(alive).float(), torch.stack(states)


def discounted_returns(rewards: Tensor, discount: float = 0.99) -> Tensor:
    """The sum of the rewards to come, each worth `discount` of the one before; `rewards: (T, N)`, the same shape comes back."""
    returns, total = [], torch.zeros(rewards.shape[1])
    for reward in rewards.flip(0):
        total = reward + discount * total
        returns.append(total)
    return torch.stack(returns).flip(0)


def policy_loss(logarithms: Tensor, alive: Tensor) -> Tensor:
    """Makes actions likelier that were followed by more than what the carts have on average, in units of the deviation."""
    returns = discounted_returns(alive)
    count = alive.sum()
    mean = (returns * alive).sum() / count
    deviation = (((returns - mean) * alive).square().sum() / count).sqrt()
    advantage = (returns - mean) / (deviation + 1e-6)
    return -(logarithms * advantage * alive).sum() / count


def main() -> None:
    options = parse_options(__file__, __doc__, steps=60)
    torch.manual_seed(options.seed)
    policy = make_policy()
    optimizer = torch.optim.Adam(policy.parameters(), lr=0.02)
    longest, carts = 200, 32
    lengths: list[float] = []
    progress = Progress(options.steps)
    for _ in progress:
        logarithms, alive, _ = play(policy, carts, longest)
        loss = policy_loss(logarithms, alive)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        progress.record(loss.item())
        lengths.append(alive.sum(dim=0).mean().item())

    with torch.no_grad():
        _, alive, states = play(policy, 100, longest)
    balanced = alive.sum(dim=0).mean().item()
    figure = Figure(figsize=(10, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    plot_losses(left, lengths, f"steps until the pole falls, at most {longest}")
    angles = states[:, :8, 2].rad2deg().masked_fill(alive[:, :8] == 0, math.nan)
    right.plot(angles.numpy(), linewidth=0.8)
    right.set(xlabel="step", ylabel="angle in degrees", title="eight poles after training", ylim=(-12, 12))
    finish(options, progress, figure, "mean steps until the pole falls", balanced)


if __name__ == "__main__":
    main()
