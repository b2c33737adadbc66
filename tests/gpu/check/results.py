"""What a run of scripts/gpu-check has found, and the two files that hold it."""

import contextlib
import itertools
import json
import os
import shutil
import sys
import threading
import time

from . import decisions, report

LISTS = ("failures", "surprises", "skipped")
SAME = ("dry run", "device", "driver", "memory", "libcuda")  # of the machine, for --resume
OUT_OF_TIME = "out of time"
CRASHED = "gpu-check itself"
SPOILT = "the machine"  # the name of the note that no other of its part can be trusted
OF_CASES = ("conformance", "runtimes", "pages")  # the parts that --cases makes smaller
ALL_CASES = "all"
EVERY = 5  # seconds between two writings within a part
FILES = ("results.json", "results.md")
LOGS = tuple(part + ".log" for part in OF_CASES)
RUN = ("begun", "bfcpreload", "card", "cases", "parts")  # what is kept of a run
INSIDE = {"machine": object, "parts": dict, "seconds": (int, float), "runs": dict, "decisions": dict}  # else lines


class CannotResume(Exception):
    pass


class Results:
    """Safe to use from several threads."""

    def __init__(self, folder, also=None):
        """`also`: a second folder that gets all files."""
        self.folder = folder
        self.folders = list(dict.fromkeys(filter(None, (folder, also))))
        for place in self.folders:
            os.makedirs(place, exist_ok=True)
        self.lock = threading.RLock()  # over `all` and the files
        self.written = 0
        self.problem = None  # why the last writing did not go well
        self.all = {"machine": {}, "runs": [], **{name: [] for name in LISTS}, "parts": {}, "seconds": {},
                    "decisions": [], "ended": [], "left": []}

    @property
    def machine(self):
        return self.all["machine"]

    def path(self, name):
        return os.path.join(self.folder, name)

    # ---- of an earlier run ----

    def set_aside(self):
        """Where the files of an earlier run that is not resumed have gone, or None."""
        names = [name for name in FILES + LOGS if os.path.exists(self.path(name))]
        if not names:
            return None
        place = next(path for number in itertools.count(1) if not os.path.exists(path := self.path(f"before-{number}")))
        os.mkdir(place)
        for name in names:
            os.replace(self.path(name), os.path.join(place, name))
        return place

    def take_over(self, machine, parts, cases=ALL_CASES):
        """Takes the results of an earlier run on the same device. Returns the parts that are left to do;
        all of them where there are no earlier results. One that ended with other conformance cases than these is left."""
        if not os.path.exists(self.path("results.json")):
            return parts
        earlier = self.read_earlier()
        differs = [name for name in SAME if earlier["machine"].get(name) != machine.get(name)]
        if differs:
            raise CannotResume(f"{self.path('results.json')} is of another machine ({', '.join(differs)} "
                               "differs): name another folder with --out, or leave out --resume")
        with self.lock:
            self.all = earlier
            earlier["ended"] = [part for part in earlier["ended"] if part not in OF_CASES or
                                any(run["cases"] in (ALL_CASES, cases) for run in self.runs_of(part))]
        return [part for part in parts if part not in earlier["ended"]]

    def read_earlier(self):
        try:
            with open(self.path("results.json"), encoding="utf-8") as file:
                earlier = json.load(file)
            self.must_be_of_this_kind(earlier)
        except (ValueError, RecursionError) as problem:
            raise CannotResume(f"{self.path('results.json')} cannot be resumed from: {problem}; leave out "
                               "--resume to run all parts") from problem
        return earlier

    def must_be_of_this_kind(self, earlier):
        if not isinstance(earlier, dict) or set(earlier) != set(self.all):
            raise ValueError("it has other keys than this gpu-check writes")
        for key, value in earlier.items():
            items = value.values() if isinstance(value, dict) else value
            if type(value) is not type(self.all[key]) or not all(isinstance(item, INSIDE.get(key, str)) for item in items):
                raise ValueError(f"its {key} are not as this gpu-check writes them")
        if not all(set(run) == set(RUN) and isinstance(run["parts"], list) for run in earlier["runs"]):
            raise ValueError("its runs are not as this gpu-check writes them")

    # ---- of this run ----

    def begin(self, run, parts):
        """`run`: what RUN names, but for its parts. Notes that `parts` are to be done, beside what an earlier run has left."""
        with self.lock:
            self.all["runs"].append({**run, "parts": []})
            self.all["left"] += [part for part in parts if part not in self.all["left"]]
            self.write()
            if self.problem:
                raise self.problem

    def runs_of(self, part):
        """Those whose results of this part are kept."""
        return [run for run in self.all["runs"] if part in run["parts"]]

    def begin_part(self, name, resumes):
        """`resumes`: what an earlier turn has found is kept, unless the machine had spoilt it or it is of other sources."""
        with self.lock:
            run = self.all["runs"][-1]
            of_others = any(run["bfcpreload"] != earlier["bfcpreload"] for earlier in self.runs_of(name))
            if resumes and not of_others and not self.has(name, SPOILT):
                self.drop_unfinished(name)
            else:
                self.drop(name)
            if name not in run["parts"]:
                run["parts"].append(name)

    def drop(self, part):
        """Forgets what was noted of a part."""
        with self.lock:
            if os.path.exists(self.path(part + ".log")):
                os.remove(self.path(part + ".log"))
            for run in self.runs_of(part):
                run["parts"].remove(part)
            for name in "parts", "seconds":
                self.all[name].pop(part, None)
            for name in LISTS:
                self.all[name] = [line for line in self.all[name] if not line.startswith(part + ": ")]
            self.all["ended"] = [name for name in self.all["ended"] if name != part]

    def drop_unfinished(self, part):
        """Forgets only what said that there was no time, or that gpu-check itself went wrong."""
        with self.lock:
            begin, end = part + ": ", ": " + OUT_OF_TIME
            self.all["failures"] = [line for line in self.all["failures"] if not line.startswith(begin + CRASHED + ": ")]
            self.all["parts"].get(part, {}).pop(CRASHED, None)
            late = [line[len(begin):-len(end)] for line in self.all["skipped"]
                    if line.startswith(begin) and line.endswith(end)]
            self.all["skipped"] = [line for line in self.all["skipped"]
                                   if not (line.startswith(begin) and line.endswith(end))]
            for name in late:
                self.all["parts"].get(part, {}).pop(name, None)

    def forget(self, part, begin):
        """The notes whose names begin so; what was complained of stays."""
        with self.lock:
            entries = self.all["parts"].get(part, {})
            for name in [name for name in entries if name.startswith(begin)]:
                del entries[name]

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

    def spoil(self, part, why):
        """The part is to be done again from its beginning: one cannot tell which of its notes are the machine's fault."""
        self.note(part, SPOILT, f"{why}: all of this part is to be done again", "surprises", why)

    def counts(self):
        found = sum(report.tally(entries)["results"] for entries in self.all["parts"].values())
        return f"{found} results, " + ", ".join(f"{len(self.all[name])} {name}" for name in LISTS)

    # ---- the files ----

    def write(self):
        """A folder that takes no file, such as a full one, keeps what it had, and is tried again the next time."""
        with self.lock:
            self.written = time.monotonic()
            self.all["decisions"] = decisions.decide(self.all)
            texts = dict(zip(FILES, (json.dumps(self.all, indent=1) + "\n", report.markdown(self.all))))
            problems = [problem for place in self.folders if (problem := self.write_into(place, texts))]
            if problems and not self.problem:
                print(f"gpu-check: results cannot be written, and are kept in memory: {problems[0]}", file=sys.stderr)
            self.problem = problems[0] if problems else None

    def write_into(self, place, texts):
        """The problem, or None."""
        try:
            for name, text in texts.items():
                with whole(os.path.join(place, name)) as path, \
                        open(path, "w", encoding="utf-8", errors="backslashreplace") as file:
                    file.write(text)
            for log in LOGS if place != self.folder else ():
                if os.path.exists(self.path(log)):
                    with whole(os.path.join(place, log)) as path:
                        shutil.copyfile(self.path(log), path)
        except OSError as problem:
            return OSError(problem.errno, problem.strerror, place)
        return None


@contextlib.contextmanager
def whole(path):
    """Where to write what then takes the place of `path`, so that a run may be ended at any time."""
    try:
        yield path + ".new"
        os.replace(path + ".new", path)
    except OSError:
        with contextlib.suppress(OSError):
            os.remove(path + ".new")
        raise
