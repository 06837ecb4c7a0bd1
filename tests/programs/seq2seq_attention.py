"""Sequence to sequence: an encoder and a decoder of GRUs with additive attention spell numbers backwards in words; packed sequences, teacher forcing."""

import random

import torch
import torch.nn.functional as F
from torch import nn, optim
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

WORDS = "zero one two three four five six seven eight nine".split()
PAD, SOS, EOS = 0, 1, 2


class Vocabulary:
    def __init__(self, words):
        self.index2word = {PAD: "<pad>", SOS: "<s>", EOS: "</s>"}
        self.word2index = {}
        for w in words:
            self.word2index[w] = len(self.index2word)
            self.index2word[len(self.index2word)] = w

    def __len__(self):
        return len(self.index2word)


class EncoderRNN(nn.Module):
    def __init__(self, size, hidden, dropout=0.1):
        super().__init__()
        self.embedding = nn.Embedding(size, hidden, padding_idx=PAD)
        self.gru = nn.GRU(hidden, hidden, batch_first=True, bidirectional=True)
        self.bridge = nn.Linear(2 * hidden, hidden)
        self.dropout = nn.Dropout(dropout)

    def forward(self, tokens, lengths):
        embedded = self.dropout(self.embedding(tokens))
        packed = pack_padded_sequence(embedded, lengths.cpu(), batch_first=True, enforce_sorted=False)
        output, hidden = self.gru(packed)
        output, _ = pad_packed_sequence(output, batch_first=True)
        return self.bridge(output), torch.tanh(self.bridge(torch.cat([hidden[0], hidden[1]], -1)))[None]


class Attention(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.Wa, self.Ua, self.Va = nn.Linear(hidden, hidden), nn.Linear(hidden, hidden), nn.Linear(hidden, 1)

    def forward(self, query, keys, mask):
        scores = self.Va(torch.tanh(self.Wa(query) + self.Ua(keys))).squeeze(2).unsqueeze(1)
        weights = F.softmax(scores.masked_fill(~mask[:, None], float("-inf")), dim=-1)
        return torch.bmm(weights, keys), weights


class Decoder(nn.Module):
    def __init__(self, hidden, size):
        super().__init__()
        self.embedding = nn.Embedding(size, hidden)
        self.attention = Attention(hidden)
        self.gru = nn.GRU(2 * hidden, hidden, batch_first=True)
        self.out = nn.Linear(hidden, size)

    def forward(self, keys, hidden, mask, steps, target=None):
        token = torch.empty(keys.size(0), 1, dtype=torch.long).fill_(SOS)
        outputs, attentions = [], []
        for i in range(steps):
            context, weights = self.attention(hidden.permute(1, 0, 2), keys, mask)
            output, hidden = self.gru(torch.cat((self.embedding(token), context), dim=2), hidden)
            output = self.out(output)
            outputs.append(output)
            attentions.append(weights)
            token = target[:, i].unsqueeze(1) if target is not None else output.topk(1)[1].squeeze(-1).detach()
        return F.log_softmax(torch.cat(outputs, dim=1), dim=-1), torch.cat(attentions, dim=1)


def pair(voc_in, voc_out):
    digits = [random.randrange(10) for _ in range(random.randint(2, 6))]
    source = torch.tensor([voc_in.word2index[str(d)] for d in digits] + [EOS])
    return source, torch.tensor([voc_out.word2index[WORDS[d]] for d in reversed(digits)] + [EOS])


def batch(voc_in, voc_out, size):
    sources, targets = zip(*[pair(voc_in, voc_out) for _ in range(size)])
    lengths = torch.tensor([len(s) for s in sources])
    return pad_sequence(sources, batch_first=True), lengths, pad_sequence(targets, batch_first=True, padding_value=PAD)


def main():
    random.seed(2)
    torch.manual_seed(2)
    voc_in, voc_out = Vocabulary([str(i) for i in range(10)]), Vocabulary(WORDS)
    encoder, decoder = EncoderRNN(len(voc_in), 32), Decoder(32, len(voc_out))
    encoder_optimizer, decoder_optimizer = optim.Adam(encoder.parameters(), lr=5e-3), optim.Adam(decoder.parameters(), lr=5e-3)
    criterion = nn.NLLLoss(ignore_index=PAD)
    total = 0.0
    for step in range(1, 61):
        tokens, lengths, target = batch(voc_in, voc_out, 32)
        encoder_optimizer.zero_grad()
        decoder_optimizer.zero_grad()
        keys, hidden = encoder(tokens, lengths)
        mask = torch.arange(keys.size(1))[None] < lengths[:, None]
        outputs, _ = decoder(keys, hidden, mask, target.size(1), target if random.random() < 0.9 else None)
        loss = criterion(outputs.view(-1, outputs.size(-1)), target.view(-1))
        loss.backward()
        nn.utils.clip_grad_norm_(list(encoder.parameters()) + list(decoder.parameters()), 1.0)
        encoder_optimizer.step()
        decoder_optimizer.step()
        total += loss.item()
        if step % 10 == 0:
            print(f"{step} {total / 10:.4f}")
            total = 0.0
    encoder.eval(), decoder.eval()
    with torch.no_grad():
        tokens, lengths, target = batch(voc_in, voc_out, 3)
        keys, hidden = encoder(tokens, lengths)
        outputs, attentions = decoder(keys, hidden, torch.arange(keys.size(1))[None] < lengths[:, None], target.size(1))
        for ids, goal in zip(outputs.argmax(-1), target):
            print(" ".join(voc_out.index2word[i.item()] for i in ids), "<-", " ".join(voc_out.index2word[i.item()] for i in goal))
        print("attention rows sum to", attentions.sum(-1).mean().item())


if __name__ == "__main__":
    main()
