"""Plans with pages behind the pool: what is held, and when the device is asked for pages no more."""
import os
import sys

from planned import Planned, main

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'replay'))
import traces  # noqa: E402

PERIODS = 1000


class Pages(Planned):
    def make(self, name):
        path = self.path(name + '.csv')
        with open(path, 'w', encoding='ascii') as stream:
            traces.make(name, stream)
        return path

    def play(self, trace, periods, **variables):
        return self.lines(self.loop(trace, periods=periods), SIM_MEMORY='80G', BFC_BACKING='pages', **variables)

    def check_held(self, period):
        self.assertLessEqual(period['most'], 1.03 * period['live'])

    def test_a_plan_of_a_file(self):
        """Lifetimes without a pattern: at rest from the second period on."""
        for name in 'plan-cache', 'batches-ahead':
            with self.subTest(name):
                trace = self.make(name)
                plan = self.plan(self.loop(trace, periods=6), SIM_MEMORY='80G')
                periods = self.play(trace, 6, BFC_PLAN=plan)
                self.assertEqual([period['missed'] for period in periods], [0] * 6)
                self.assertEqual(len({period['page_calls'] for period in periods}), 1)
                for period in periods:
                    self.check_held(period)

    def test_a_plan_of_its_own(self):
        """What keeps pages on the move is planned, and then at rest; the limit holds at the switch."""
        periods = self.play(self.make('batches-ahead'), PERIODS, BFC_PLAN='auto', BFC_LIMIT='1200M', PAUSE=50, REST=5)
        self.assertLess(len(periods), PERIODS, 'pages were on the move to the end')
        self.assertGreater(periods[-1]['followed'], 0)
        self.check_held(periods[-1])
        self.assertLessEqual(periods[-1]['reserved'], 1200 << 20)

    def test_no_plan_where_pages_rest(self):
        for name in 'multigrid', 'fft-plans':
            with self.subTest(name):
                periods = self.play(self.make(name), 10, BFC_PLAN='auto', PAUSE=50)
                self.assertEqual(len({period['page_calls'] for period in periods}), 1)
                self.assertEqual(periods[-1]['memory'], 0)
                self.assertEqual(periods[-1]['followed'] + periods[-1]['missed'], 0)


main()
