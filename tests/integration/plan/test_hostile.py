"""Plans that are none, damaged, of another program: refused in one line, and the job runs without."""
import os
import struct

from planned import Planned, main, write_lifetimes
from sealing import ARENAS, ARENAS_AT, on_device, seal

HEADER = 144
PROGRAM, EVENTS_AT, EVENTS, ANCHORS, PERIOD, FLAGS = 40, 88, 108, 112, 120, 124
EVENT = 48

class Hostile(Planned):
    def setUp(self):
        super().setUp()
        self.lifetimes = self.path('lifetimes.csv')
        write_lifetimes(self.lifetimes, 60)
        self.arguments = self.loop(self.lifetimes, 1, 4)
        with open(self.plan(self.arguments), 'rb') as file:
            self.good = file.read()

    def run_with(self, path):
        done = self.run_program(self.arguments, BFC_PLAN=path)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stderr

    def check_refused(self, path, why):
        complaint = self.run_with(path)
        self.assertEqual(complaint.count('\n'), 1, complaint)
        self.assertIn('BFC_PLAN=', complaint)
        self.assertIn(why, complaint)
        self.assertIn('runs without', complaint)

    def write(self, contents):
        path = self.path('hostile')
        with open(path, 'wb') as file:
            file.write(contents)
        return path

    def check_changed(self, place, kind, value, why):
        plan = bytearray(self.good)
        struct.pack_into(kind, plan, place, value)
        self.check_refused(self.write(seal(plan)), why)

    def read(self, kind, place):
        return struct.unpack_from(kind, self.good, place)[0]

    def test_a_good_one_is_followed(self):
        self.assertEqual(self.run_with(self.write(self.good)), '')
        self.assertEqual(self.run_with(self.write(seal(bytearray(self.good)))), '')

    def test_files_that_are_no_plans(self):
        fifo = self.path('fifo')
        os.mkfifo(fifo)
        self.check_refused(fifo, 'not a regular file')
        self.check_refused('/dev/zero', 'not a regular file')
        self.check_refused(self.folder, 'not a regular file')
        self.check_refused(self.path('absent'), 'cannot be opened: No such file')
        self.check_refused(self.write(b''), 'not a plan')
        self.check_refused(self.write(b'x' * 4096), 'not a plan')
        self.check_refused(self.lifetimes, 'not a plan')
        endless = self.path('endless')
        with open(endless, 'wb') as file:
            file.truncate(2**40)
        self.check_refused(endless, 'larger than')

    def test_truncated_at_any_length(self):
        for length in (0, 1, 143, 144, 200, len(self.good) // 2, len(self.good) - 1):
            with self.subTest(length):
                self.check_refused(self.write(self.good[:length]),
                                   'not a plan' if length < HEADER else f'but the file has {length}')

    def test_damaged_anywhere(self):
        for place in range(HEADER, len(self.good), len(self.good) // 12):
            damaged = bytearray(self.good)
            damaged[place] ^= 0x40
            self.check_refused(self.write(damaged), 'checksum')
        self.check_refused(self.write(self.good + b'\0' * 64), f'but the file has {len(self.good) + 64}')

    def test_of_another_program_version_or_machine(self):
        self.check_changed(PROGRAM, '<Q', 12345, 'another program')
        self.check_changed(8, '<I', 1, 'version')
        self.check_changed(12, '<I', 0x04030201, 'byte order')
        self.check_changed(FLAGS, '<I', 0, 'list of lifetimes')
        more = [*self.arguments[:3], '5']
        done = self.run_program(more, BFC_PLAN=self.write(self.good))
        self.assertEqual((done.returncode, done.stderr.count('\n')), (0, 1))
        self.assertIn('other arguments', done.stderr)

    def test_that_contradict_themselves(self):
        events = self.read('<Q', EVENTS_AT)
        self.check_changed(EVENTS_AT, '<Q', 2**63, 'a table lies outside the file')
        self.check_changed(ANCHORS, '<I', 2**31, 'a table lies outside the file')
        self.check_changed(PERIOD, '<I', 2**31, 'its numbers contradict each other')
        self.check_changed(ARENAS, '<I', 2**20, 'a table lies outside the file')
        self.check_changed(events, '<Q', 2**62, "event 0: it ends above its arena's peak")
        self.check_changed(events, '<Q', 1, 'event 0: its offset or size is not a multiple')
        self.check_changed(events + 8, '<Q', 2**40, "event 0: it ends above its arena's peak")
        self.check_changed(events + 40, '<I', 99, 'event 0: its arena does not exist')
        self.check_changed(events + 44, '<B', 77, 'event 0: its class does not exist')
        self.check_changed(self.read('<Q', ARENAS_AT) + 8, '<Q', 2**62, 'larger than any device')

    def test_two_blocks_in_one_place(self):
        plan = bytearray(self.good)
        for number in range(self.read('<I', EVENTS)):
            struct.pack_into('<Q', plan, self.read('<Q', EVENTS_AT) + EVENT * number, 0)
        self.check_refused(self.write(seal(plan)), 'at offset 0 overlap')

    def test_of_another_device(self):
        self.check_refused(self.write(on_device(self.good, 5)), 'plans nothing on device 0')

    def test_sizes_and_order_of_another_loop(self):
        """It is well formed, and nothing in it fits: the contents are checked all the same."""
        for seed in range(1, 6):
            plan = bytearray(self.good)
            count, start = self.read('<I', EVENTS), self.read('<Q', EVENTS_AT)
            tables = [bytes(plan[start + EVENT * i:start + EVENT * (i + 1)]) for i in range(count)]
            for i in range(count):
                at = start + EVENT * i
                plan[at:at + EVENT] = tables[(i * (2 * seed + 1) + seed) % count]
            self.run_with(self.write(seal(plan)))


main()
