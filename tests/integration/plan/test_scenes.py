"""Plans in programs with threads, several contexts, contexts that end, children, captures."""
import json
import os
import subprocess

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

    def pools_at_end(self, scene, **variables):
        """What each pool of a job tells when all else of it has changed."""
        arguments = [os.environ['SCENES'], scene]
        plan = self.plan(arguments, **variables)
        environment = dict(os.environ, LD_PRELOAD=os.environ['PRELOAD'], SIM_STEP='1', BFC_PLAN=plan,
                           TURN='1', STAY='1', **self.own_device(), **variables)
        with subprocess.Popen(arguments, env=environment, stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True) as job:
            self.assertEqual(job.stdout.readline(), 'done\n')
            shown = subprocess.run([os.environ['BFCSTAT'], '--json', str(job.pid)], check=True,
                                   capture_output=True, text=True).stdout
            job.stdin.close()
        return json.loads(shown)['pools']

    def told_at_end(self, scene, **variables):
        """The same, of its plan alone."""
        return [pool['plan'] for pool in self.pools_at_end(scene, **variables)]

    def test_a_thread_that_comes_back_from_another_device_has_its_own_place(self):
        told = self.told_at_end('devices', SIM_DEVICES='2')[0]
        self.assertGreater(told['followed'], 10 * told['missed'], told)

    def test_memory_whose_address_others_got_is_asked_for_again(self):
        told = self.told_at_end('trimmed')[0]
        self.assertGreater(told['followed'], 10 * told['missed'], told)

    def test_pages_that_are_left_of_the_plan_s_memory_serve_others(self):
        pool = self.pools_at_end('trimmed-in-part', BFC_BACKING='pages')[0]
        self.assertLess(pool['peak_reserved'], 1.5 * pool['peak_in_use'])

    def test_the_place_of_a_thread_that_ended_is_another_s(self):
        told = self.told_at_end('relay')[0]
        self.assertEqual((told['followed'], told['missed']), (12 * 6, 0), told)

    def test_of_contexts_that_begin_at_once_one_follows_it(self):
        for _ in range(5):
            told = self.told_at_end('at-once')
            self.assertEqual(sum(plan is not None and plan['followed'] > 0 for plan in told), 1, told)

    def test_every_allocation_of_threads_that_begin_at_once_is_counted(self):
        for _ in range(5):
            pool = self.pools_at_end('together')[0]
            told = pool['plan']
            self.assertEqual(told['followed'] + told['missed'] + told['unplanned'],
                             pool['allocations'], told)

    def test_out_of_memory_beside_a_planned_block_is_explained(self):
        arguments = [os.environ['SCENES'], 'left']
        plan = self.plan(arguments)
        done = self.run_program(arguments, BFC_PLAN=plan, TURN='1', SIM_MEMORY='256M',
                                BFC_BACKING='malloc')
        self.assertEqual(done.stdout, 'out of memory\ndone\n')
        self.assertIn('a run without BFC_PLAN', done.stderr)
        self.assertEqual(self.run_well(arguments, TURN='1', SIM_MEMORY='256M'), 'done\n')

    def test_pages_beside_a_planned_block_go_elsewhere_before_an_allocation_fails(self):
        arguments = [os.environ['SCENES'], 'left']
        plan = self.plan(arguments)
        for mode in 'sync', 'lazy', 'ordered':
            with self.subTest(mode):
                self.assertEqual(self.run_well(arguments, BFC_PLAN=plan, TURN='1', SIM_MEMORY='256M',
                                               BFC_BACKING='pages', BFC_FREE=mode), 'done\n')


main()
