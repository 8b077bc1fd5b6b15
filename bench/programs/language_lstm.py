"""A word-level language model: an LSTM of two layers over a made-up text, with plain gradient steps, as the word_language_model example."""
import torch
import torch.nn as nn

torch.manual_seed(0)
WORDS, WIDTH, STEPS, BATCH = 200, 64, 20, 16


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.rnn, self.decoder = nn.Embedding(WORDS, WIDTH), nn.LSTM(WIDTH, WIDTH, 2), nn.Linear(WIDTH, WORDS)

    def forward(self, x, hidden):
        out, hidden = self.rnn(self.encoder(x), hidden)
        return self.decoder(out).view(-1, WORDS), hidden


text = (torch.arange(STEPS * BATCH * 60) ** 2 % 997) % WORDS
data = text.view(BATCH, -1).t().contiguous()
model, criterion = Model(), nn.CrossEntropyLoss()
for epoch in range(2):
    hidden = (torch.zeros(2, BATCH, WIDTH), torch.zeros(2, BATCH, WIDTH))
    total, count = 0.0, 0
    for i in range(0, data.size(0) - 1 - STEPS, STEPS):
        model.zero_grad()
        hidden = tuple(h.detach() for h in hidden)
        out, hidden = model(data[i : i + STEPS], hidden)
        loss = criterion(out, data[i + 1 : i + 1 + STEPS].reshape(-1))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        with torch.no_grad():
            for p in model.parameters():
                p.add_(p.grad, alpha=-2.0)
        total, count = total + loss.item(), count + 1
print(total / count)
