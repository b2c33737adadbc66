"""PyTorch: training of a small network, with inputs of varying length."""
import client

STATE = {}


def start():
    import torch

    torch.manual_seed(1)
    torch.use_deterministic_algorithms(True)
    torch.utils.deterministic.fill_uninitialized_memory = False  # which no program does
    device = "cpu" if client.ON_CPU else "cuda"
    model = torch.nn.Sequential(
        torch.nn.Linear(512, 2048), torch.nn.GELU(), torch.nn.LayerNorm(2048),
        torch.nn.Linear(2048, 2048), torch.nn.GELU(), torch.nn.Linear(2048, 64)).to(device)
    STATE.update(torch=torch, model=model, device=device,
                 optimizer=torch.optim.AdamW(model.parameters(), lr=1e-3))
    step(0)


def step(number):
    torch, model, device = STATE["torch"], STATE["model"], STATE["device"]
    rows = 256 + number * 97 % 1024
    generator = torch.Generator().manual_seed(number)
    inputs = torch.randn(rows, 512, generator=generator).to(device)
    wanted = torch.randint(0, 64, (rows,), generator=generator).to(device)
    STATE["optimizer"].zero_grad(set_to_none=True)
    loss = torch.nn.functional.cross_entropy(model(inputs), wanted)
    loss.backward()
    STATE["optimizer"].step()
    return loss.item()


def work(rounds):
    losses = [step(number) for number in range(1, 1 + rounds)]
    weights = [p.detach().cpu().numpy().tobytes() for p in STATE["model"].parameters()]
    return repr(losses).encode() + b"".join(weights)


client.run("pytorch", start, work, 150)
