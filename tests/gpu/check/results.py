"""What a run of scripts/gpu-check has found, and the two files that hold it."""

import glob
import json
import os
import shutil
import threading
import time

from . import decisions, report

LISTS = ("failures", "surprises", "skipped")
SAME = ("dry run", "device", "driver", "memory", "libcuda")  # of the machine, for --resume
OUT_OF_TIME = "out of time"
EVERY = 5  # seconds between two writings within a part


class CannotResume(Exception):
    pass


class Results:
    """Safe to use from several threads."""

    def __init__(self, folder, also=None):
        """`also`: a second folder that gets all files."""
        for place in filter(None, (folder, also)):
            os.makedirs(place, exist_ok=True)
        self.folder, self.also = folder, also
        self.lock = threading.RLock()  # over `all` and the files
        self.written = 0
        self.all = {"machine": {}, **{name: [] for name in LISTS}, "parts": {}, "seconds": {},
                    "decisions": [], "ended": [], "left": []}

    @property
    def machine(self):
        return self.all["machine"]

    def path(self, name):
        return os.path.join(self.folder, name)

    # ---- of an earlier run ----

    def take_over(self, machine, parts):
        """Takes the results of an earlier run on the same device. Returns the parts that are left to do;
        all of them where there are no earlier results."""
        if not os.path.exists(self.path("results.json")):
            return parts
        earlier = self.read_earlier()
        differs = [name for name in SAME if earlier["machine"].get(name) != machine.get(name)]
        if differs:
            raise CannotResume(f"{self.path('results.json')} is of another machine ({', '.join(differs)} "
                               "differs): name another folder with --out, or leave out --resume")
        with self.lock:
            self.all = earlier
        return [part for part in parts if part not in earlier["ended"]]

    def read_earlier(self):
        try:
            with open(self.path("results.json"), encoding="utf-8") as file:
                earlier = json.load(file)
            if set(earlier) != set(self.all):
                raise ValueError("it has other keys than this gpu-check writes")
        except ValueError as problem:
            raise CannotResume(f"{self.path('results.json')} cannot be resumed from: {problem}; leave out "
                               "--resume to run all parts") from problem
        return earlier

    def plan(self, parts):
        """Notes that these are to be done, beside what an earlier run has left."""
        with self.lock:
            self.all["left"] += [part for part in parts if part not in self.all["left"]]

    def drop(self, part):
        """Forgets what was noted of a part."""
        with self.lock:
            if os.path.exists(self.path(part + ".log")):
                os.remove(self.path(part + ".log"))
            for name in "parts", "seconds":
                self.all[name].pop(part, None)
            for name in LISTS:
                self.all[name] = [line for line in self.all[name] if not line.startswith(part + ": ")]
            self.all["ended"] = [name for name in self.all["ended"] if name != part]

    def drop_unfinished(self, part):
        """Forgets only what said that there was no time."""
        with self.lock:
            begin, end = part + ": ", ": " + OUT_OF_TIME
            late = [line[len(begin):-len(end)] for line in self.all["skipped"]
                    if line.startswith(begin) and line.endswith(end)]
            self.all["skipped"] = [line for line in self.all["skipped"]
                                   if not (line.startswith(begin) and line.endswith(end))]
            for name in late:
                self.all["parts"].get(part, {}).pop(name, None)

    def has(self, part, name):
        with self.lock:
            return name in self.all["parts"].get(part, {})

    def has_ended(self, part):
        return part in self.all["ended"]

    # ---- noting ----

    def note(self, part, name, value, kind=None, why=""):
        with self.lock:
            self.all["parts"].setdefault(part, {})[name] = value
            if kind:
                self.complain(part, name, kind, why.strip()[-1000:])
            if time.monotonic() - self.written > EVERY:
                self.write()

    def complain(self, part, name, kind, why):
        """Once, also when a part is resumed."""
        line = f"{part}: {name}: {why}"
        with self.lock:
            if line not in self.all[kind]:
                self.all[kind].append(line)

    def end_part(self, part, seconds, whole):
        """`whole`: nothing of the part was left out for want of time."""
        with self.lock:
            self.all["seconds"][part] = round(self.all["seconds"].get(part, 0) + seconds, 1)
            if whole:
                self.all["ended"].append(part)
                self.all["left"] = [name for name in self.all["left"] if name != part]
            self.write()

    def counts(self):
        return ", ".join(f"{len(self.all[name])} {name}" for name in LISTS)

    def write(self):
        """Replaces whole files, so that a run may be ended at any time."""
        with self.lock:
            self.written = time.monotonic()
            self.all["decisions"] = decisions.decide(self.all)
            for name, text in (("results.json", json.dumps(self.all, indent=1) + "\n"),
                               ("results.md", report.markdown(self.all))):
                with open(self.path(name + ".new"), "w", encoding="utf-8") as file:
                    file.write(text)
                os.replace(self.path(name + ".new"), self.path(name))
            if self.also:
                for path in [*glob.glob(self.path("results.*")), *glob.glob(self.path("*.log"))]:
                    shutil.copy(path, self.also)
