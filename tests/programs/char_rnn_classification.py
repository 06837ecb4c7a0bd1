"""Classifying words by their letters: an RNN written by hand and nn.RNN, one-hot letters, one word at a time, a confusion matrix."""

import random
import string

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.rnn import pack_sequence
from torch.utils.data import Dataset

ENDINGS = {"latin": ["us", "um", "ae", "orum"], "italian": ["ino", "etti", "ello", "uzzi"], "slavic": ["ski", "ov", "enko", "vich"]}
LETTERS = string.ascii_lowercase


def letter_to_tensor(line):
    tensor = torch.zeros(len(line), 1, len(LETTERS))
    for i, letter in enumerate(line):
        tensor[i][0][LETTERS.find(letter)] = 1
    return tensor


class Names(Dataset):
    def __init__(self, count):
        self.labels_uniq = list(ENDINGS)
        self.data, self.labels = [], []
        for _ in range(count):
            label = random.choice(self.labels_uniq)
            stem = "".join(random.choice("bcdfglmnprstv") + random.choice("aeiou") for _ in range(random.randint(1, 3)))
            self.data.append(stem + random.choice(ENDINGS[label]))
            self.labels.append(label)
        self.tensors = [letter_to_tensor(d) for d in self.data]
        self.targets = [torch.tensor([self.labels_uniq.index(x)], dtype=torch.long) for x in self.labels]

    def __len__(self):
        return len(self.data)

    def __getitem__(self, idx):
        return self.targets[idx], self.tensors[idx], self.labels[idx], self.data[idx]


class HandMade(nn.Module):
    def __init__(self, input_size, hidden_size, output_size):
        super().__init__()
        self.hidden_size = hidden_size
        self.i2h = nn.Linear(input_size, hidden_size)
        self.h2h = nn.Linear(hidden_size, hidden_size)
        self.h2o = nn.Linear(hidden_size, output_size)
        self.softmax = nn.LogSoftmax(dim=1)

    def forward(self, line):
        hidden = self.init_hidden()
        for letter in line:
            hidden = F.tanh(self.i2h(letter) + self.h2h(hidden))
        return self.softmax(self.h2o(hidden))

    def init_hidden(self):
        return torch.zeros(1, self.hidden_size)


class CharRNN(nn.Module):
    def __init__(self, input_size, hidden_size, output_size):
        super().__init__()
        self.rnn = nn.RNN(input_size, hidden_size)
        self.h2o = nn.Linear(hidden_size, output_size)

    def forward(self, line):
        _, hidden = self.rnn(line)
        return F.log_softmax(self.h2o(hidden[0]), dim=1)


def train(model, data, batches, lr):
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    criterion = nn.NLLLoss()
    for i in range(batches):
        loss = 0
        for _ in range(16):
            target, line, _, _ = data[random.randrange(len(data))]
            loss += criterion(model(line), target)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 3)
        optimizer.step()
        optimizer.zero_grad()
        if (i + 1) % 5 == 0:
            print(f"{type(model).__name__} {i + 1}: {loss.item() / 16:.5f}")


def main():
    random.seed(3)
    torch.manual_seed(3)
    train_set, test_set = torch.utils.data.random_split(Names(300), [0.85, 0.15], generator=torch.Generator().manual_seed(2024))
    print(len(train_set), len(test_set), test_set[0][3])
    for model in (HandMade(len(LETTERS), 32, 3), CharRNN(len(LETTERS), 32, 3)):
        train(model, train_set, 15, 0.15)
        confusion = torch.zeros(3, 3)
        with torch.inference_mode():
            for target, line, label, _ in test_set:
                top_value, top_index = model(line).topk(1)
                confusion[target.item()][top_index[0].item()] += 1
        for i in range(3):
            if (denominator := confusion[i].sum()) > 0:
                confusion[i] = confusion[i] / denominator
        print(confusion.round(decimals=2).tolist())
    packed = pack_sequence([test_set[i][1].squeeze(1) for i in range(4)], enforce_sorted=False)
    _, hidden = model.rnn(packed)
    print(packed.batch_sizes.tolist(), f"{hidden.abs().mean().item():.5f}")


if __name__ == "__main__":
    main()
