"""Faults in any situation: crashes, hangs, silence, words of the compiler's inside."""
import re
import signal

CRASHES = {70: "internal error", 132: "SIGILL", 133: "SIGTRAP", 134: "SIGABRT", 135: "SIGBUS", 136: "SIGFPE", 139: "SIGSEGV"}
TRACES = re.compile(r"Sanitizer|Assertion|assert|runtime error:|internal error|stack smashing|free\(\): |double free|"
                    r"malloc\(\): |corrupted|Segmentation fault|Floating point exception|terminate called|core dumped|"
                    r"Aborted|Fatal error in|LLVM ERROR|PLEASE submit a bug|Stack dump")
# Words of the IR: a model's author has never seen them.
INSIDE = re.compile(r"\b(?:tensor|memref)<|'?\bmoe\.[a-z0-9_]+' op|\bscf\.[a-z]+|\bfunc\.func|\bMLIR\b|operand #|"
                    r"requires attribute|\bdoes not verify|<unknown>|\(null\)|-nan\b(?=.*bytes)|\b0x[0-9a-f]{6,}")
PLACED = re.compile(r"^\S.*?:\d+:\d+: (?:error|warning|note): ", re.M)


def judge(result, statuses):
    """Yields (kind, sentence) for every rule that a command broke. `statuses`: exit statuses that are documented."""
    if result.late:
        yield "hang", f"no end after {result.seconds:.1f} s"
        return
    said = result.out + result.err
    if result.status < 0 and result.status not in statuses:
        yield "crash", f"ended by {signal.Signals(-result.status).name}"
    elif result.status in CRASHES and result.status not in statuses:
        yield "crash", f"exit status {result.status}: {CRASHES[result.status]}"
    elif result.status not in statuses:
        yield "status", f"exit status {result.status}, expected one of {statuses}"
    elif result.status != 3 and (trace := TRACES.search(result.err)):  # 3: that is the C compiler's own.
        yield "crash", f"it says {trace.group()!r}"
    if result.status > 0 and "error" not in said and not result.err.strip():
        yield "silent", f"exit status {result.status} without a message"
    if result.status == 0 and re.search(r"^\S*: error: ", result.err, re.M):
        yield "status", "exit status 0 after an error"


def judge_words(result):
    """For messages to people who write models."""
    if word := INSIDE.search(result.err):
        yield "words", f"a message has {word.group()!r}"


def judge_placed(result, file):
    """Errors of a model's text say where."""
    if result.status == 1 and not PLACED.search(result.err) and file in result.err + file:
        yield "unplaced", "an error without its place"
