"""Many cases in child processes whose memory and time are bounded: a crash or hang costs one case."""

import multiprocessing
import resource
import shutil
import sys
import threading
import time
import traceback
import warnings
from pathlib import Path

from chaos.rows import WrongError
from gaussianmlr.errors import DataError
from support.memory import peak_megabytes

MEMORY = 1 << 30  # bytes that a case may take beyond the process itself
PATIENCE = 20.0  # seconds for one case
LONGEST = 5000  # characters of a message


class Escapes:
    """Sees, by Python's audit events, what a file made the process do, and stops it.

    Inside a `with` block of it, reading must start no program, open no connection, write nothing and
    run no bait.
    """

    def __init__(self, baits=()):
        self.baits, self.active, self.found = frozenset(baits), False, []
        sys.dont_write_bytecode = True  # imports would write
        sys.addaudithook(self._hear)

    def _hear(self, event, arguments):
        if not self.active or not self._is_escape(event, arguments):
            return
        text = f"{event} {arguments!r}"[:300]
        self.found.append(text)
        raise RuntimeError(f"stopped: {text}")

    def _is_escape(self, event, arguments):
        if event == "import":
            return arguments[0].partition(".")[0] in self.baits
        if event == "exec":
            return Path(getattr(arguments[0], "co_filename", "")).stem in self.baits
        if event == "open":
            mode, flags = arguments[1], arguments[2]
            writes = isinstance(mode, str) and any(letter in mode for letter in "wax+")
            return (writes or bool(flags & 3)) and arguments[0] != "/dev/null"
        return event in _PROGRAMS

    def __enter__(self):
        self.active = True

    def __exit__(self, *_):
        self.active = False


_PROGRAMS = {"subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork", "os.remove"}
_PROGRAMS |= {"os.rename"}
_PROGRAMS |= {"socket.connect", "socket.bind", "socket.getaddrinfo", "shutil.rmtree"}


def try_case(case, place, escapes):
    """The outcome of a case, a word; and what was wrong with it, or None."""
    escapes.found.clear()
    try:
        outcome, problem = case(place, escapes), None
    except DataError as error:
        outcome, problem = "refused", None
        if len(str(error)) > LONGEST:
            outcome, problem = "wrong", f"a message of {len(str(error)):,} characters: {str(error)[:300]}"
    except WrongError as error:
        outcome, problem = error.kind, str(error)
    except MemoryError:
        outcome, problem = "memory", traceback.format_exc()
    except Exception:
        outcome, problem = "crashed", traceback.format_exc()
    if escapes.found:  # whatever came of it
        return "escaped", escapes.found[0]
    return outcome, problem


def _work(prepare, seed, folder, places, memory, stop, pipe):
    """What a child does: every case of its share, with a message for each."""
    warnings.simplefilter("ignore")  # Pillow warns of what it repairs
    case, baits = prepare(Path(folder), seed)
    escapes = Escapes(baits)
    if sys.platform == "linux":
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        most = pages * resource.getpagesize() + memory
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    pipe.send(None)  # ready
    for place in places:
        if stop.value:
            break
        pipe.send(try_case(case, place, escapes))
    pipe.send(peak_megabytes() * 1024)


def fuzz(plan, row, prepare, *, memory=MEMORY, patience=PATIENCE):
    """Run `row.planned` cases of `prepare(folder, seed)`, which gives a function and the names of its baits.

    The function takes the number of a case and an `Escapes` to read files in; it gives a word for what
    happened. A DataError is a refusal, and anything else that it raises, a dead process, or one that does
    not come back is a failure.
    """
    shares = [range(first, row.planned, plan.jobs) for first in range(plan.jobs)]
    supervisors = [Supervisor(plan, row, prepare, share, memory, patience) for share in shares if share]
    for one in supervisors:
        one.start()
    while any(one.is_alive() for one in supervisors):
        time.sleep(0.2)
        plan.say_sometimes(f"{row.experiment}: {row.done:,} of {row.planned:,}")
    row.counts["MB at most"] = max(one.peak for one in supervisors) // 1024
    return row


class Supervisor(threading.Thread):
    """One child after another until a share of the cases is done."""

    lock = threading.Lock()  # of the row

    def __init__(self, plan, row, prepare, places, memory, patience):
        super().__init__(daemon=True)
        self.plan, self.row, self.prepare, self.places = plan, row, prepare, places
        self.memory, self.patience, self.peak = memory, patience, 0

    def run(self):
        while self.places and not self.plan.is_over:
            ready, problem = self._run_child()
            if problem is None:
                return
            kind, text = problem
            with self.lock:
                place = self.places[0] if ready and self.places else "the start"
                self.row.done += ready
                self.row.counts[kind] += 1
                self.row.fail(self.plan, kind, place, text)
            if not ready:  # it cannot even begin
                return
            self.places = self.places[1:]

    def _run_child(self):
        """Whether a child began, and what ended it before its share was done."""
        context = multiprocessing.get_context("spawn")
        stop = context.Value("b", 0)
        ours, theirs = context.Pipe(duplex=False)
        folder = self.plan.space(self.row.experiment, f"{self.places[0]}")
        arguments = (self.prepare, self.plan.seed, str(folder), self.places, self.memory, stop, theirs)
        child = context.Process(target=_work, args=arguments, daemon=True)
        child.start()
        theirs.close()
        ready = False
        try:
            while True:
                allowed = self.patience if ready else 120.0  # to import and prepare
                if not ours.poll(allowed):
                    return ready, ("hung", f"no end after {allowed:.0f} s")
                message = ours.recv()
                if message is None:
                    ready = True
                elif isinstance(message, int):
                    self.peak = max(self.peak, message)
                    return ready, None
                else:
                    self._take(*message)
                stop.value = self.plan.is_over
        except EOFError:
            child.join(10)
            return ready, ("crashed", f"the process ended with code {child.exitcode}")
        finally:
            child.kill()
            child.join()
            shutil.rmtree(folder, ignore_errors=True)

    def _take(self, outcome, problem):
        place, self.places = self.places[0], self.places[1:]
        with self.lock:
            self.row.done += 1
            self.row.counts[outcome] += 1
            if problem is not None:
                self.row.fail(self.plan, outcome, place, problem)
