"""What the tests of plans share: a list of lifetimes, and programs recorded, planned and run again."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

LIBRARY = os.environ['PRELOAD']

# What missed a plan, for each allocation that changed, over enough periods: what takes the place of
# planned ones may do so only for what has changed by then, so a few periods may have more.
MISSED_MOST = 2


def write_lifetimes(path, rows=240):
    """A training step: weights that live all the time, activations that are freed in reverse."""
    seed, lines, stack, time = 7, [], [], 0
    def draw(bound):
        nonlocal seed
        seed = (seed * 6364136223846793005 + 1442695040888963407) % 2**64
        return (seed >> 33) % bound
    while len(lines) + len(stack) < rows:
        stack.append((time, 1024 + draw(64) * draw(64) * 9000))
        time += 1
        if draw(3) == 0 and stack:
            birth, size = stack.pop(draw(len(stack)))
            lines.append((birth, time, size))
            time += 1
    while stack:
        birth, size = stack.pop()
        lines.append((birth, time, size))
        time += 1
    with open(path, 'w', encoding='ascii') as file:
        print('id,lower,upper,size', file=file)
        for number, (birth, death, size) in enumerate(sorted(lines)):
            print(f'{number},{birth},{death},{size}', file=file)


class Planned(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def own_device(self):
        """A device that no other program has: one that is full would ask this one for idle memory."""
        return {'SIM_SHARE': self.path('device')}

    def path(self, name):
        return os.path.join(self.folder, name)

    def run_program(self, arguments, seconds=120, **variables):
        environment = dict(os.environ, LD_PRELOAD=LIBRARY, SIM_STEP='1', **self.own_device())
        for name in [name for name in environment if name.startswith('BFC_')]:
            del environment[name]
        environment.update({name: str(value) for name, value in variables.items()})
        return subprocess.run(arguments, env=environment, capture_output=True, text=True,
                              timeout=seconds, check=False)

    def run_well(self, arguments, **variables):
        done = self.run_program(arguments, **variables)
        self.assertEqual((done.returncode, done.stderr), (0, ''), done.stdout)
        return done.stdout

    def plan(self, arguments, name='plan', **variables):
        """Records a run and plans it; returns the plan's path."""
        trace, plan = self.path('trace'), self.path(name)
        if os.path.exists(trace):
            os.unlink(trace)
        self.run_well(arguments, BFC_RECORD=trace, **variables)
        subprocess.run([os.environ['BFCPLAN'], 'solve', trace, '-o', plan], check=True,
                       stdout=subprocess.DEVNULL)
        return plan

    def loop(self, lifetimes, scale=1, periods=6):
        return [os.environ['LOOP'], lifetimes, str(scale), str(periods)]

    def lines(self, arguments, **variables):
        return [json.loads(line) for line in self.run_well(arguments, **variables).splitlines()]


def main():
    unittest.main(argv=sys.argv, verbosity=1)
