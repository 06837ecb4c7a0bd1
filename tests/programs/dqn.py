"""Deep Q-learning: a replay memory of named tuples, a target network that follows softly, epsilon-greedy walks through a maze of six by six."""

import math
import random
from collections import deque, namedtuple
from itertools import count

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim

Transition = namedtuple("Transition", ("state", "action", "next_state", "reward"))
BATCH_SIZE, GAMMA, EPS_START, EPS_END, EPS_DECAY, TAU = 32, 0.95, 0.9, 0.05, 300, 0.01


class Maze:
    MOVES = [(0, 1), (1, 0), (0, -1), (-1, 0)]
    WALLS = {(1, 1), (1, 2), (3, 3), (4, 1), (2, 4)}

    def reset(self):
        self.at, self.steps = (0, 0), 0
        return self._seen()

    def step(self, action):
        self.steps += 1
        to = self.at[0] + self.MOVES[action][0], self.at[1] + self.MOVES[action][1]
        if 0 <= to[0] < 6 and 0 <= to[1] < 6 and to not in self.WALLS:
            self.at = to
        won = self.at == (5, 5)
        return self._seen(), 1.0 if won else -0.02, won, self.steps >= 60

    def _seen(self):
        return [self.at[0] / 5, self.at[1] / 5, float((self.at[0] + 1, self.at[1]) in self.WALLS), float((self.at[0], self.at[1] + 1) in self.WALLS)]


class ReplayMemory:
    def __init__(self, capacity):
        self.memory = deque([], maxlen=capacity)

    def push(self, *args):
        self.memory.append(Transition(*args))

    def sample(self, batch_size):
        return random.sample(self.memory, batch_size)

    def __len__(self):
        return len(self.memory)


class DQN(nn.Module):
    def __init__(self, n_observations, n_actions):
        super().__init__()
        self.layer1 = nn.Linear(n_observations, 64)
        self.layer2 = nn.Linear(64, 64)
        self.layer3 = nn.Linear(64, n_actions)

    def forward(self, x):
        return self.layer3(F.relu(self.layer2(F.relu(self.layer1(x)))))


def select_action(policy, state, steps_done):
    eps = EPS_END + (EPS_START - EPS_END) * math.exp(-1.0 * steps_done / EPS_DECAY)
    if random.random() > eps:
        with torch.no_grad():
            return policy(state).max(1).indices.view(1, 1)
    return torch.tensor([[random.randrange(4)]], dtype=torch.long)


def optimize(memory, policy, target, optimizer):
    if len(memory) < BATCH_SIZE:
        return None
    batch = Transition(*zip(*memory.sample(BATCH_SIZE)))
    non_final = torch.tensor(tuple(s is not None for s in batch.next_state), dtype=torch.bool)
    values = policy(torch.cat(batch.state)).gather(1, torch.cat(batch.action))
    next_values = torch.zeros(BATCH_SIZE)
    with torch.no_grad():
        next_values[non_final] = target(torch.cat([s for s in batch.next_state if s is not None])).max(1).values
    expected = next_values * GAMMA + torch.cat(batch.reward)
    loss = nn.SmoothL1Loss()(values, expected.unsqueeze(1))
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_value_(policy.parameters(), 100)
    optimizer.step()
    return loss.item()


def main():
    random.seed(4)
    torch.manual_seed(4)
    maze, memory, steps_done = Maze(), ReplayMemory(10000), 0
    policy, target = DQN(4, 4), DQN(4, 4)
    target.load_state_dict(policy.state_dict())
    optimizer = optim.AdamW(policy.parameters(), lr=1e-3, amsgrad=True)
    for episode in range(8):
        state = torch.tensor(maze.reset(), dtype=torch.float32).unsqueeze(0)
        losses = []
        for t in count():
            action = select_action(policy, state, steps_done)
            steps_done += 1
            seen, reward, won, stopped = maze.step(action.item())
            next_state = None if won else torch.tensor(seen, dtype=torch.float32).unsqueeze(0)
            memory.push(state, action, next_state, torch.tensor([reward]))
            state = next_state
            if (loss := optimize(memory, policy, target, optimizer)) is not None:
                losses.append(loss)
            after = target.state_dict()
            for key, value in policy.state_dict().items():
                after[key] = value * TAU + after[key] * (1 - TAU)
            target.load_state_dict(after)
            if won or stopped:
                print(f"episode {episode}: {t + 1} steps, loss {sum(losses) / max(1, len(losses)):.6f}")
                break
    with torch.no_grad():
        print("values at the start", policy(torch.tensor([maze.reset()])).numpy().round(3).tolist())


if __name__ == "__main__":
    main()
