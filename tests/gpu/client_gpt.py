"""PyTorch: training steps of a transformer of GPT-2's size (124 million weights), with texts of varying length.

CLIENT_SIZE=small is for trying it where there is no GPU: it does without cuBLAS, which takes no simulated one.
"""
import os

import client

SMALL = os.environ.get("CLIENT_SIZE") == "small"
LAYERS, WIDTH, HEADS, WORDS, LONGEST = (2, 64, 4, 500, 64) if SMALL else (12, 768, 12, 50257, 1024)
BATCH = 4
STATE = {}


def build():
    import torch
    from torch import nn

    def product(one, other):
        return (one.unsqueeze(-1) * other.unsqueeze(-3)).sum(-2) if SMALL else one @ other

    class Linear(nn.Linear):
        def forward(self, x):
            return product(x, self.weight.T) + self.bias if SMALL else super().forward(x)

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.before, self.after = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
            self.qkv, self.out = Linear(WIDTH, 3 * WIDTH), Linear(WIDTH, WIDTH)
            self.wide, self.narrow = Linear(WIDTH, 4 * WIDTH), Linear(4 * WIDTH, WIDTH)

        def attend(self, x):
            batch, length, _ = x.shape
            q, k, v = (part.view(batch, length, HEADS, -1).transpose(1, 2)
                       for part in self.qkv(x).chunk(3, dim=2))
            scores = product(q, k.transpose(2, 3)) * (WIDTH // HEADS) ** -0.5
            later = torch.ones(length, length, dtype=torch.bool, device=x.device).triu(1)
            weights = scores.masked_fill(later, float("-inf")).softmax(-1)
            return self.out(product(weights, v).transpose(1, 2).reshape(batch, length, WIDTH))

        def forward(self, x):
            x = x + self.attend(self.before(x))
            return x + self.narrow(nn.functional.gelu(self.wide(self.after(x))))

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.places = nn.Embedding(WORDS, WIDTH), nn.Embedding(LONGEST, WIDTH)
            self.blocks, self.last = nn.ModuleList(Block() for _ in range(LAYERS)), nn.LayerNorm(WIDTH)

        def forward(self, text):
            x = self.words(text) + self.places(torch.arange(text.shape[1], device=text.device))
            for block in self.blocks:
                x = block(x)
            return product(self.last(x), self.words.weight.T)

    return torch, Model()


def start():
    torch, model = build()
    torch.manual_seed(1)
    torch.use_deterministic_algorithms(True)
    torch.utils.deterministic.fill_uninitialized_memory = False  # which no program does
    device = "cpu" if client.ON_CPU else "cuda"
    model.to(device)
    with torch.no_grad():
        for number, weights in enumerate(model.parameters()):  # made on the host, so the same everywhere
            generator = torch.Generator().manual_seed(number)
            weights.copy_(torch.randn(weights.shape, generator=generator) * 0.02)
    STATE.update(torch=torch, model=model, device=device,
                 optimizer=torch.optim.AdamW(model.parameters(), lr=1e-4))
    step(0)


def step(number):
    torch, model = STATE["torch"], STATE["model"]
    length = LONGEST // 8 + number * 389 % (LONGEST * 7 // 8)
    generator = torch.Generator().manual_seed(number)
    text = torch.randint(0, WORDS, (BATCH, length + 1), generator=generator).to(STATE["device"])
    STATE["optimizer"].zero_grad(set_to_none=True)
    guesses = model(text[:, :-1])
    loss = torch.nn.functional.cross_entropy(guesses.reshape(-1, WORDS), text[:, 1:].reshape(-1))
    loss.backward()
    STATE["optimizer"].step()
    return loss.item()


def work(rounds):
    losses = [step(number) for number in range(1, 1 + rounds)]
    sums = [weights.detach().double().sum().item() for weights in STATE["model"].parameters()]
    return repr((losses, sums)).encode()


client.run("gpt", start, work, 25)
