"""Loops of which a part changes at random in each period, by a plan of a file and by their own."""
from planned import Planned, main, write_lifetimes

MODES = ['sync', 'lazy', 'ordered']


class Changed(Planned):
    def setUp(self):
        super().setUp()
        self.lifetimes = self.path('lifetimes.csv')
        write_lifetimes(self.lifetimes)

    def check_misses(self, periods):
        first, last = periods[0], periods[-1]
        changed = sum(period['changed'] for period in periods[1:])
        self.assertGreater(changed, 0)
        self.assertLessEqual(last['missed'] - first['missed'], 2 * changed)

    def test_by_a_file_whatever_changes(self):
        arguments = self.loop(self.lifetimes)
        plan = self.plan(arguments)
        for percent in 1, 5, 20:
            for mode in MODES:
                with self.subTest(f'{percent} % {mode}'):
                    self.check_misses(self.lines(arguments, BFC_FREE=mode, BFC_PLAN=plan, SHAPE=1,
                                                 CHANGED=percent))

    def test_by_its_own_plan(self):
        arguments = self.loop(self.lifetimes, periods=150)
        for percent in 1, 5, 20:
            with self.subTest(f'{percent} %'):
                periods = self.lines(arguments, BFC_PLAN='auto', CHANGED=percent, PAUSE=10)
                followed = [period for period in periods if period['memory']][2:]
                if len(followed) < 2:
                    self.skipTest('the thread that learns got no processor in 150 periods')
                self.check_misses(followed)


main()
