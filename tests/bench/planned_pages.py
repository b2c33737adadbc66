#!/usr/bin/env python3
"""Traces played again and again with pages behind the pool, and with a plan: what is held, and how often the device is
asked for pages.

usage: planned_pages.py BUILD auto|file TRACE.csv...

`file`: played six times, recorded, planned (bfcplan solve), and played with the plan. `auto`: BFC_PLAN=auto, sixty
times with a pause of 300 ms after each. Prints for each trace the most live; most reserved ÷ most live in the first
period and in the last; the calls of the first period and of all later ones that made any.
"""
import json
import os
import subprocess
import sys
import tempfile

PERIODS = {'auto': 60, 'file': 6}
PAUSE_MS = {'auto': 300, 'file': 0}
MIB = 1 << 20


class Player:
    def __init__(self, build):
        self.loop = os.path.join(build, 'tests/integration/plan/plan-loop')
        self.library = os.path.join(build, 'interpose/libbfcpreload.so')
        self.bfcplan = os.path.join(build, 'tools/plan/bfcplan')

    def play(self, trace, periods, pause=0, **variables):
        """Returns what the player tells of each period."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith('BFC_')}
        environment.update(LD_PRELOAD=self.library, SIM_STEP='1', SIM_MEMORY='80G', PAUSE=str(pause), BFC_STACKS='off',
                           BFC_YIELD='0', BFC_BACKING='pages', **variables)
        done = subprocess.run([self.loop, trace, '1', str(periods)], env=environment, check=True, capture_output=True,
                              text=True)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def with_plan(self, trace, kind):
        with tempfile.TemporaryDirectory() as folder:
            recorded, plan = os.path.join(folder, 'trace'), 'auto'
            if kind == 'file':
                plan = os.path.join(folder, 'plan')
                self.play(trace, 6, BFC_RECORD=recorded)
                subprocess.run([self.bfcplan, 'solve', recorded, '-o', plan], check=True, stdout=subprocess.DEVNULL)
            return self.play(trace, PERIODS[kind], PAUSE_MS[kind], BFC_PLAN=plan)


def show(name, periods):
    held = [period['most'] / period['live'] for period in periods]
    before = [0] + [period['page_calls'] for period in periods[:-1]]
    calls = [period['page_calls'] - earlier for period, earlier in zip(periods, before)]
    later = {number: made for number, made in enumerate(calls[1:], 2) if made}
    print('%-22s %7.0f MiB  held %.4f, at last %.4f  calls %d  then %s' % (
        name, periods[-1]['live'] / MIB, max(held), held[-1], calls[0], later or 'none'), flush=True)


def main():
    if len(sys.argv) < 4 or sys.argv[2] not in PERIODS:
        sys.exit(__doc__)
    player = Player(sys.argv[1])
    for trace in sys.argv[3:]:
        show(os.path.basename(trace)[:-len('.csv')], player.with_plan(trace, sys.argv[2]))


if __name__ == '__main__':
    main()
