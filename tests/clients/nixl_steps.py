"""Two agents of NIXL in one process: memory of the device is registered and read across, over UCX."""
import logging
import os
import sys

import torch
from nixl_cu13._api import nixl_agent, nixl_agent_config

logging.disable(logging.INFO)  # its lines have times
agents = [nixl_agent(name, nixl_agent_config(backends=["UCX"])) for name in ("here", "there")]
agents[0].add_remote_agent(agents[1].get_agent_metadata())
for step, count in enumerate((1024, 40000, 1 << 20, 3 << 20)):
    source = torch.arange(count, dtype=torch.int32).cuda()
    target = torch.zeros(count, dtype=torch.int32, device="cpu").cuda()
    registered = [agent.register_memory([tensor]) for agent, tensor in zip(agents, (target, source))]
    agents[0].add_remote_agent(agents[1].get_agent_metadata())
    lists = [agent.get_xfer_descs([tensor]) for agent, tensor in zip(agents, (target, source))]
    transfer = agents[0].initialize_xfer("READ", lists[0], lists[1], "there", b"done")
    state = agents[0].transfer(transfer)
    while state == "PROC":
        state = agents[0].check_xfer_state(transfer)
    print(step, count, state, "right" if torch.equal(target.cpu(), source.cpu()) else "wrong")
    agents[0].release_xfer_handle(transfer)
    for agent, what in zip(agents, registered):
        agent.deregister_memory(what)
sys.stdout.flush()
os._exit(0)  # libnl, which this wheel brings along, crashes in its end
