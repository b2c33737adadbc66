"""Plans in programs with threads, several contexts, contexts that end, children, captures."""
import os

from planned import Planned, main


class Scenes(Planned):
    def check_scene(self, scene, modes=('sync', 'lazy', 'ordered')):
        arguments = [os.environ['SCENES'], scene]
        for mode in modes:
            with self.subTest(mode):
                plan = self.plan(arguments, BFC_FREE=mode)
                for backing in 'malloc', 'pages':
                    shown = self.run_well(arguments, BFC_FREE=mode, BFC_PLAN=plan,
                                          BFC_BACKING=backing)
                    self.assertEqual(shown, 'done\n')

    def test_plain(self):
        self.check_scene('plain')

    def test_threads(self):
        self.check_scene('threads')

    def test_contexts(self):
        self.check_scene('contexts')

    def test_a_context_that_ends(self):
        self.check_scene('ends')

    def test_fork(self):
        self.check_scene('fork')

    def test_capture(self):
        self.check_scene('capture')


main()
