"""cuDNN, as PyTorch uses it: convolutions forth and back, of varying size."""
import client

STATE = {}


def start():
    import torch

    torch.manual_seed(1)
    torch.use_deterministic_algorithms(True)
    torch.backends.cudnn.deterministic = True
    torch.backends.cudnn.benchmark = False
    STATE.update(torch=torch, layer=torch.nn.Conv2d(8, 16, 3, padding=1).cuda())
    work(1)


def work(rounds):
    torch, layer = STATE["torch"], STATE["layer"]
    results = []
    for number in range(rounds):
        generator = torch.Generator().manual_seed(number)
        images = torch.randn(4, 8, 32 + number % 5, 32, generator=generator).cuda().requires_grad_()
        layer.zero_grad(set_to_none=True)
        layer(images).square().sum().backward()
        results.append(images.grad.cpu().numpy().tobytes() + layer.weight.grad.cpu().numpy().tobytes())
    return b"".join(results)


client.run("cudnn", start, work, 100)
