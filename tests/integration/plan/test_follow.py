"""A loop that follows the plan of its own recording: how much it reserves, and how often it misses."""
import json
import os
import subprocess

from planned import MISSED_MOST, Planned, main, write_lifetimes

MODES = ['sync', 'lazy', 'ordered']


class Follow(Planned):
    def setUp(self):
        super().setUp()
        self.lifetimes = self.path('lifetimes.csv')
        write_lifetimes(self.lifetimes)
        self.arguments = self.loop(self.lifetimes)

    def check_followed(self, periods, bound):
        last, second = periods[-1], periods[1]
        self.assertLessEqual(last['reserved'], 1.01 * bound)
        for what in 'missed', 'reserve_calls', 'lost', 'busy':
            self.assertEqual(last[what], second[what], what)
        self.assertGreater(last['followed'], second['followed'])

    def test_unchanged_it_reserves_the_bound_and_misses_nothing(self):
        for mode in MODES:
            with self.subTest(mode):
                plan = self.plan(self.arguments, BFC_FREE=mode)
                periods = self.lines(self.arguments, BFC_FREE=mode, BFC_PLAN=plan)
                self.check_followed(periods, periods[-1]['bound'])
                self.assertLessEqual(periods[-1]['bound'], 1.001 * periods[-1]['live'])

    def test_changed_it_misses_little_more_than_what_changed(self):
        plan = self.plan(self.arguments)
        for percent in 1, 5, 20:
            for mode in MODES:
                with self.subTest(f'{percent} % {mode}'):
                    periods = self.lines(self.arguments, BFC_FREE=mode, BFC_PLAN=plan,
                                         CHANGED=percent)
                    alone = self.lines(self.arguments, BFC_FREE=mode, CHANGED=percent)
                    changed = sum(period['changed'] for period in periods)
                    self.assertGreater(changed, 0)
                    self.assertLessEqual(periods[-1]['missed'], MISSED_MOST * changed)
                    self.assertLessEqual(periods[-1]['reserved'], 1.1 * alone[-1]['reserved'])

    def test_under_any_policy_and_backing(self):
        plan = self.plan(self.arguments)
        for variables in ({'BFC_POLICY': 'tf'}, {'BFC_POLICY': 'pytorch'},
                          {'BFC_BACKING': 'pages'}, {'BFC_MAX_SPLIT': '32M'},
                          {'BFC_ROUNDUP': '4'}, {'BFC_TRIM_IDLE': '100'}):
            with self.subTest(variables):
                periods = self.lines(self.arguments, BFC_PLAN=plan, **variables)
                self.check_followed(periods, periods[-1]['bound'])

    def test_the_traces(self):
        for name, scale in ('pytorch-resnet-step', 4), ('somas-resnet50', 1), ('iopddl-G_1', 1):
            trace = os.path.join(os.environ['TRACES'], name + '.csv')
            if not os.path.exists(trace):
                self.skipTest(f'{trace} is not there')
            with self.subTest(name):
                arguments = self.loop(trace, scale, 4)
                plan = self.plan(arguments)
                for mode in 'sync', 'ordered':
                    periods = self.lines(arguments, BFC_FREE=mode, BFC_PLAN=plan)
                    self.check_followed(periods, periods[-1]['live'])

    def test_where_its_memory_cannot_be_had_the_job_runs_without(self):
        plan = self.plan(self.arguments)
        alone = self.lines(self.arguments)
        for variables in ({'BFC_LIMIT': alone[-1]['bound'] or alone[-1]['live'] * 9 // 10},
                          {'BFC_LIMIT': alone[-1]['live'] + (16 << 20)},
                          {'SIM_MEMORY': alone[-1]['live'] + (64 << 20)}):
            with self.subTest(variables):
                before = self.run_program(self.arguments, **variables)
                done = self.run_program(self.arguments, BFC_PLAN=plan, **variables)
                self.assertLessEqual(done.returncode, before.returncode, done.stdout)
                limit = variables.get('BFC_LIMIT', 2**62)
                for line in done.stdout.splitlines():
                    if line.startswith('{'):
                        self.assertLessEqual(json.loads(line)['reserved'], limit)

    def ask(self, *arguments):
        return subprocess.run([os.environ['BFCSTAT'], *arguments], capture_output=True, text=True,
                              check=True).stdout

    def test_bfcstat_shows_it(self):
        plan = self.plan(self.arguments)
        environment = dict(os.environ, LD_PRELOAD=os.environ['PRELOAD'], SIM_STEP='1',
                           BFC_PLAN=plan, CHANGED='5', STAY='1', **self.own_device())
        with subprocess.Popen(self.arguments, env=environment, stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True) as job:
            lines = [json.loads(job.stdout.readline()) for _ in range(6)]
            text, shown = self.ask(str(job.pid)), json.loads(self.ask('--json', str(job.pid)))
            job.stdin.close()
        told = shown['pools'][0]['plan']
        self.assertEqual((told['source'], told['followed'], told['missed']),
                         ('file', lines[-1]['followed'], lines[-1]['missed']))
        self.assertEqual((told['period'], told['lost']), (240, 0))
        self.assertGreater(told['missed'], 0)
        self.assertNotEqual(told['divergence']['expected'], told['divergence']['came'])
        self.assertIn('period 240 allocations', text)
        self.assertIn('last difference', text)

    def test_auto_is_no_file(self):
        self.run_well(self.arguments, BFC_PLAN='auto')


main()
