"""PyTorch: training of a small network, with inputs of varying length."""
import client

STATE = {}


def start():
    import torch

    torch.manual_seed(1)
    torch.use_deterministic_algorithms(True)
    torch.backends.cuda.matmul.allow_tf32 = False
    model = torch.nn.Sequential(
        torch.nn.Linear(512, 2048), torch.nn.GELU(), torch.nn.LayerNorm(2048),
        torch.nn.Linear(2048, 2048), torch.nn.GELU(), torch.nn.Linear(2048, 64)).cuda()
    STATE.update(torch=torch, model=model,
                 optimizer=torch.optim.AdamW(model.parameters(), lr=1e-3))
    step(0)


def step(number):
    torch, model = STATE["torch"], STATE["model"]
    rows = 256 + number * 97 % 1024
    generator = torch.Generator().manual_seed(number)
    inputs = torch.randn(rows, 512, generator=generator).cuda()
    wanted = torch.randint(0, 64, (rows,), generator=generator).cuda()
    STATE["optimizer"].zero_grad(set_to_none=True)
    loss = torch.nn.functional.cross_entropy(model(inputs), wanted)
    loss.backward()
    STATE["optimizer"].step()
    return loss.item()


def work():
    losses = [step(number) for number in range(1, 151)]
    weights = [p.detach().cpu().numpy().tobytes() for p in STATE["model"].parameters()]
    return repr(losses).encode() + b"".join(weights)


client.run("pytorch", start, work)
