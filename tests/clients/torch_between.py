"""Tensors of PyTorch that go to other processes, which read them and send others back; and a loader
whose workers are forked once the device is in use."""
import torch
import torch.multiprocessing as processes
from torch.utils.data import DataLoader


def answer(questions, answers):
    """Reads each tensor, and sends one back that holds what was read."""
    kept = []
    while (tensor := questions.get()) is not None:
        kept.append(tensor.cpu().cuda())
        answers.put(kept[-1])
    questions.get()  # until all has been read, since the sender must outlive its tensors' users


def send(count):
    context = processes.get_context("spawn")
    questions, answers = context.Queue(), context.Queue()
    other = context.Process(target=answer, args=(questions, answers))
    other.start()
    for number in range(count):
        host = torch.arange(1000 * (number + 1) + 100000 * (number % 3), dtype=torch.int64)
        tensor = host.cuda()
        questions.put(tensor)
        back = answers.get()
        print("between", number, "right" if torch.equal(back.cpu(), host) else "wrong")
        del back, tensor
    for _ in range(2):
        questions.put(None)
    other.join()
    torch.cuda.ipc_collect()  # what is still listed as sent at exit makes PyTorch crash
    print("other ended", other.exitcode)


def load():
    loader = DataLoader(torch.arange(64).reshape(16, 4), batch_size=4, num_workers=2)
    for number, batch in enumerate(loader):
        there = batch.cuda()
        print("loaded", number, "right" if torch.equal(there.cpu(), batch) else "wrong")


if __name__ == "__main__":
    torch.ones(10).cuda()
    send(8)
    load()
