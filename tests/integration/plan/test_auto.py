"""Programs that plan themselves, with a library that checks its pools at every call: contents, and
that nothing fails; how well plans are followed is told elsewhere."""
import os

from planned import Planned, main, write_lifetimes

MODES = ['sync', 'lazy', 'ordered']
SCENES = ['plain', 'threads', 'contexts', 'ends', 'fork', 'capture', 'trimmed', 'left', 'relay',
          'at-once']


class Auto(Planned):
    def test_a_loop_that_changes(self):
        lifetimes = self.path('lifetimes.csv')
        write_lifetimes(lifetimes)
        for mode in MODES:
            for backing in 'malloc', 'pages':
                with self.subTest(f'{mode} {backing}'):
                    self.run_well(self.loop(lifetimes, periods=60), BFC_PLAN='auto', BFC_FREE=mode,
                                  BFC_BACKING=backing, CHANGED=5, SHAPE=1, PAUSE=5)

    def test_scenes(self):
        for scene in SCENES:
            for mode in MODES:
                with self.subTest(f'{scene} {mode}'):
                    shown = self.run_well([os.environ['SCENES'], scene], BFC_PLAN='auto', TURN=1,
                                          BFC_FREE=mode)
                    self.assertEqual(shown, 'done\n')


main()
