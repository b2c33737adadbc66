#!/usr/bin/env python3
"""How long a loop of which a part changes in each period takes with a plan, compared with the pool alone.

usage: changed_loop.py BUILD [ROUNDS] TRACE.csv:SCALE...

Each trace is played 60 times in a row as calls of a program (tests/integration/plan/loop.c) with 0, 1, 5 and 20 % of
the sizes changed, mode `sync`: without a plan, with one of a file made of the unchanged loop, and with its own
(`auto`), with a pause of 10 ms after each period, which is not counted; and that with three costs of the stand-in GPU's
calls: none; those of allocations and frees alone, as `typical` has them; and all of `typical`. The three ways take
turns, for ROUNDS rounds (5). Of each period the round that took least counts, so that other work on the machine hardly
does.

Printed as a line of JSON for each cell: for `file` and `auto`, the time of all periods from the 31st on, in which a plan
was there in every round, ÷ the time of the same periods without: "wall" by the clock, "processor" of the program's
thread; "periods", how many those were; "calls", those that reserved memory in them, of the last round, and "calls_alone".
"""
import json
import os
import subprocess
import sys
import tempfile

PERIODS = 60
COSTS = {'none': '', 'memory': 'alloc:7,free:7', 'typical': 'typical'}
WAYS = 'alone', 'file', 'auto'


class Player:
    def __init__(self, build, folder):
        self.loop = os.path.join(build, 'tests/integration/plan/plan-loop')
        self.library = os.path.join(build, 'interpose/libbfcpreload.so')
        self.bfcplan = os.path.join(build, 'tools/plan/bfcplan')
        self.folder = folder

    def play(self, trace, **variables):
        """Returns what the program tells of each period."""
        path, scale = trace
        environment = {name: value for name, value in os.environ.items() if not name.startswith(('BFC_', 'SIM_L'))}
        environment.update(LD_PRELOAD=self.library, SIM_STEP='1', PAUSE='10', **variables)
        done = subprocess.run([self.loop, path, scale, str(PERIODS)], env=environment, check=True,
                              capture_output=True, text=True)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def plan(self, trace):
        recorded, plan = os.path.join(self.folder, 'trace'), os.path.join(self.folder, 'plan')
        if os.path.exists(recorded):
            os.unlink(recorded)
        self.play(trace, BFC_RECORD=recorded)
        subprocess.run([self.bfcplan, 'solve', recorded, '-o', plan], check=True, stdout=subprocess.DEVNULL)
        return plan


def compare(ways, way):
    """By the periods in which every round had a plan."""
    rounds, alone = ways[way], ways['alone']
    periods = [i for i in range(PERIODS // 2, PERIODS) if all(played[i - 1]['memory'] for played in rounds)]
    if not periods:
        return {'periods': 0}
    told = {'periods': len(periods)}
    for figure in 'wall', 'processor':
        took, without = (sum(min(played[i][figure + '_ns'] for played in all_rounds) for i in periods)
                         for all_rounds in (rounds, alone))
        told[figure] = round(took / without, 3)
    for name, played in ('calls', rounds[-1]), ('calls_alone', alone[-1]):
        told[name] = played[periods[-1]]['reserve_calls'] - played[periods[0] - 1]['reserve_calls']
    return told


def measure(player, trace, plan, costs, changed, rounds):
    plans = {'alone': {}, 'file': {'BFC_PLAN': plan}, 'auto': {'BFC_PLAN': 'auto'}}
    ways = {way: [] for way in WAYS}
    for _ in range(rounds):
        for way in WAYS:
            ways[way].append(player.play(trace, SIM_LATENCY=COSTS[costs], CHANGED=str(changed), **plans[way]))
    return {way: compare(ways, way) for way in WAYS[1:]}


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    rounds = int(sys.argv[2]) if sys.argv[2].isdecimal() else 5
    with tempfile.TemporaryDirectory() as folder:
        player = Player(sys.argv[1], folder)
        for argument in sys.argv[2 + sys.argv[2].isdecimal():]:
            trace = argument.rpartition(':')[::2]
            plan = player.plan(trace)
            for costs in COSTS:
                for changed in 0, 1, 5, 20:
                    cell = measure(player, trace, plan, costs, changed, rounds)
                    print(json.dumps({'trace': os.path.basename(trace[0]), 'costs': costs, 'changed': changed, **cell}),
                          flush=True)


if __name__ == '__main__':
    main()
