"""REINFORCE with a baseline and PPO with distributions on a walk, a lazily sized network, truncated advantages."""

import torch
import torch.nn as nn
from torch.distributions import Categorical, Independent, Normal, TransformedDistribution, kl_divergence
from torch.distributions.transforms import TanhTransform
from torch.nn.utils import parameters_to_vector, vector_to_parameters


class Walk:
    """Many walkers at once on a line; they are rewarded for standing at 0."""

    def __init__(self, count):
        self.x, self.v = torch.rand(count) * 4 - 2, torch.zeros(count)

    def observe(self):
        return torch.stack([self.x, self.v, self.x.sign()], -1)

    def step(self, push):
        self.v = 0.9 * self.v + 0.2 * push
        self.x = (self.x + self.v).clamp(-3, 3)
        return -self.x.abs() - 0.01 * push**2


class ActorCritic(nn.Module):
    def __init__(self, actions):
        super().__init__()
        self.body = nn.Sequential(nn.LazyLinear(32), nn.Tanh())
        self.actor, self.critic = nn.LazyLinear(actions), nn.LazyLinear(1)
        self.log_std = nn.Parameter(torch.zeros(1))

    def forward(self, seen):
        hidden = self.body(seen)
        return self.actor(hidden), self.critic(hidden).squeeze(-1)


def reinforce():
    model = ActorCritic(3)
    print(model)
    model(torch.zeros(1, 3))
    print(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    pushes = torch.tensor([-1.0, 0.0, 1.0])
    for episode in range(10):
        walk, log_probs, values, rewards, entropies = Walk(8), [], [], [], []
        for _ in range(20):
            scores, value = model(walk.observe())
            chosen = Categorical(logits=scores)
            action = chosen.sample()
            log_probs.append(chosen.log_prob(action))
            entropies.append(chosen.entropy())
            values.append(value)
            rewards.append(walk.step(pushes[action]))
        returns, R = [], torch.zeros(8)
        for r in rewards[::-1]:
            R = r + 0.95 * R
            returns.insert(0, R)
        returns = torch.stack(returns)
        returns = (returns - returns.mean()) / (returns.std() + torch.finfo(torch.float32).eps)
        advantage = returns - torch.stack(values)
        loss = (
            (-torch.stack(log_probs) * advantage.detach()).mean()
            + nn.functional.smooth_l1_loss(torch.stack(values), returns)
            - 0.01 * torch.stack(entropies).mean()
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if episode % 3 == 0:
            print(f"episode {episode} loss {loss.item():.5f} reward {torch.stack(rewards).mean().item():.5f}")


def ppo():
    model = ActorCritic(1)
    model(torch.zeros(1, 3))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3, eps=1e-5)

    def policy(scores):
        base = Independent(Normal(scores, model.log_std.exp().expand_as(scores)), 1)
        return TransformedDistribution(base, [TanhTransform(cache_size=1)])

    for iteration in range(3):
        walk, kept = Walk(16), []
        with torch.no_grad():
            for _ in range(16):
                seen = walk.observe()
                scores, value = model(seen)
                distribution = policy(scores)
                action = distribution.sample()
                kept.append((seen, action, distribution.log_prob(action), value, walk.step(action.squeeze(-1))))
            last = model(walk.observe())[1]
        seen, actions, old, values, rewards = (torch.stack(each) for each in zip(*kept))
        advantages, running = torch.zeros_like(rewards), 0.0
        for t in reversed(range(16)):
            following = values[t + 1] if t < 15 else last
            running = rewards[t] + 0.95 * following - values[t] + 0.95 * 0.9 * running
            advantages[t] = running
        returns = advantages + values
        flat = [each.flatten(0, 1) for each in (seen, actions, old, advantages, returns)]
        before = parameters_to_vector(model.parameters()).detach().clone()
        for chosen in torch.randperm(256).view(4, 64):
            s, a, lp, adv, ret = (each[chosen] for each in flat)
            scores, value = model(s)
            ratio = (policy(scores).log_prob(a) - lp).exp()
            adv = (adv - adv.mean()) / adv.std()
            loss = -torch.min(ratio * adv, ratio.clamp(0.8, 1.2) * adv).mean() + 0.5 * (value - ret).pow(2).mean()
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            optimizer.step()
        moved = (parameters_to_vector(model.parameters()) - before).norm().item()
        print(f"iteration {iteration} loss {loss.item():.5f} ratio {ratio.mean().item():.5f} moved {moved:.5f}")
    vector_to_parameters(before, model.parameters())
    print(f"{kl_divergence(Normal(0.0, 1.0), Normal(torch.tensor(0.5), 2.0)).item():.6f}", Categorical(torch.ones(4)).entropy().item())


def main():
    torch.manual_seed(16)
    torch.set_printoptions(precision=3, sci_mode=False)
    reinforce()
    ppo()


if __name__ == "__main__":
    main()
