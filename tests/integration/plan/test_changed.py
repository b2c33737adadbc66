"""Loops of which a part changes at random in each period, by a plan of a file and by their own."""
from planned import MISSED_MOST, Planned, main, write_lifetimes

ENOUGH = 40  # periods with a plan of which the misses are compared with the changes
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
        self.assertLessEqual(last['missed'] - first['missed'], MISSED_MOST * changed)

    def test_by_a_file_whatever_changes(self):
        arguments = self.loop(self.lifetimes, periods=60)
        plan = self.plan(arguments)
        for percent in 1, 5, 20:
            for mode in MODES:
                with self.subTest(f'{percent} % {mode}'):
                    self.check_misses(self.lines(arguments, BFC_FREE=mode, BFC_PLAN=plan, SHAPE=1,
                                                 CHANGED=percent))

    def check_own_plan(self, lifetimes, **variables):
        arguments = self.loop(lifetimes, periods=200)
        periods = self.lines(arguments, BFC_PLAN='auto', PAUSE=10, **variables)
        followed = [period for period in periods if period['memory']][2:]
        if len(followed) < ENOUGH:
            self.skipTest('the thread that learns got too little of a processor in 200 periods')
        self.check_misses(followed)

    def test_by_its_own_plan(self):
        for percent in 1, 5, 20:
            with self.subTest(f'{percent} %'):
                self.check_own_plan(self.lifetimes, CHANGED=percent)

    def test_by_its_own_plan_where_some_are_missing_and_others_come(self):
        short = self.path('short.csv')
        write_lifetimes(short, rows=90)
        for lifetimes in self.lifetimes, short:
            for percent in 5, 20:
                with self.subTest(f'{percent} %'):
                    self.check_own_plan(lifetimes, CHANGED=percent, SHAPE=1)

    def test_with_pages_it_holds_little_more_than_lives(self):
        arguments = self.loop(self.lifetimes, scale=16, periods=40)
        for percent in 1, 5, 20:
            for shape in {}, {'SHAPE': 1}:
                with self.subTest(f'{percent} % {shape}'):
                    periods = self.lines(arguments, BFC_PLAN='auto', BFC_BACKING='pages', SIM_MEMORY='80G',
                                         CHANGED=percent, **shape)
                    live = periods[-1]['live']
                    self.assertGreater(live, 1 << 30)
                    self.assertLessEqual(max(period['most'] for period in periods), 1.05 * live)


main()
