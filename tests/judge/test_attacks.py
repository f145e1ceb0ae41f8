"""Programs that try to be accepted without the answer, to break out, or to take the judge down: none succeeds.

The attacks are data (tests/attacks/*.toml). An attack prints the right answer if what it tries works, so `accepted`
means that it got through; entries with `control = true` are harmless siblings that must be accepted. `internal_error`
is no right verdict either: it has no reward, so a program that could cause it could escape a reward of 0.

Fields: problem, code (or `build`, `build_completion`: Python expressions that make it), uses (snippets put before the
code), first (a program judged before), verdicts, within_s, says (text that must not be in the message), control,
bare (also run without a sandbox, where it must work), needs = "full" (not promised by the reduced sandbox). A table
with `language = "cpp"`, or another, holds programs in that language, which are not run where its tools are missing.
"""

from __future__ import annotations

import ctypes
import functools
import os
import pwd
import resource
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from microcoder import Judge, Problem, Solution, Verdict
from microcoder.judge import JudgeError, languages
from microcoder.judge.toolchains import NoCompiler

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the sandbox layers under attack are Linux's")

FOLDER = Path(__file__).parents[1] / "attacks"
NOBODY = 65534
WITNESS = "witness-b4c19e: only the owner of this file may know"
PLAIN = Problem.from_dict({"id": "plain", "tests": [{"input": "4\n", "output": "16\n"}]})


@dataclass
class Attack:
    name: str
    problem: Problem
    verdicts: list[str]
    language: str = "python"
    code: str | None = None
    completion: str | None = None
    first: str = ""
    says: str = ""
    within_s: float = 60.0
    control: bool = False
    bare: bool = False
    needs: str = ""
    promised: bool = True  # False: a limit that docs/explanation/judge.md owns up to under this name


def load() -> list[Attack]:
    out = []
    tables = {path.stem: tomllib.loads(path.read_text("utf-8")) for path in sorted(FOLDER.glob("*.toml"))}
    snippets = tables.pop("snippets")["snippets"]
    chosen = os.environ.get("MICROCODER_ATTACK_TOPICS", "").split()
    for topic, table in tables.items():
        if chosen and topic not in chosen:
            continue
        problems = {k: Problem.from_dict({"id": f"{topic}/{k}", **v}) for k, v in table["problems"].items()}
        for row in table["attacks"]:
            row = dict(row)
            row["problem"] = problems[row["problem"]]
            code = "".join(snippets[name] for name in row.pop("uses", [])) + row.pop("code", "")
            if "build_completion" in row:
                row["completion"] = eval(row.pop("build_completion"))
            else:
                row["code"] = eval(row.pop("build")) if "build" in row else code
            row |= {"name": f"{topic}/{row['name']}", "language": table.get("language", "python")}
            out.append(Attack(**row))
    return out


ATTACKS = load()
# What a program returns is judged alike whoever runs the judge; what it can reach is not.
WHERE_THE_USER_MATTERS = "channels cpp files go hunting java javascript leftovers limits network processes rust"


@dataclass
class World:
    """What the attacks are after: files, listeners and a process of the user who runs the judge."""

    names: dict[str, str]  # the @NAMES@ in the programs and what they stand for
    home: Path
    outside: Path
    victim: subprocess.Popen[bytes]
    heard: list[str] = field(default_factory=list)
    sockets: list[socket.socket] = field(default_factory=list)

    def fill(self, text: str) -> str:
        for name, value in self.names.items():
            text = text.replace(f"@{name}@", value)
        return text

    def listen(self, name: str, family: int, kind: int, address: Any) -> Any:
        sock = socket.socket(family, kind)
        sock.bind(address)
        if kind == socket.SOCK_STREAM:
            sock.listen(8)
        self.sockets.append(sock)
        threading.Thread(target=self._hear, args=(name, sock, kind), daemon=True).start()
        return sock.getsockname()

    def _hear(self, name: str, sock: socket.socket, kind: int) -> None:
        while True:
            try:
                if kind == socket.SOCK_STREAM:
                    sock.accept()[0].close()
                else:
                    sock.recv(100)
            except OSError:
                return
            self.heard.append(name)


def let_through(folder: Path, factory: pytest.TempPathFactory) -> None:
    """Whoever the candidates run as could go there: permissions are not what protects it. Adds bits, takes none."""
    base = factory.getbasetemp()
    above = [path for path in (base, *base.parents) if Path(tempfile.gettempdir()) in path.parents]
    for path in (folder, *above):
        if path.stat().st_uid == os.getuid():
            path.chmod(path.stat().st_mode & 0o7777 | 0o011)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    work = tmp_path_factory.mktemp("outside")
    let_through(work, tmp_path_factory)
    outside = work / "witness.txt"
    (work / "answers.jsonl").write_text('{"output": "zq81-kappa-5530"}\n{"output": "vt27-omega-9164"}\n')
    home = Path(os.environ.get("HOME") or pwd.getpwuid(os.getuid()).pw_dir)
    if not os.access(home, os.W_OK):
        home = work
    witness = home / f".microcoder-witness-{os.getpid()}"
    for path in (outside, witness):
        path.write_text(WITNESS)
        path.chmod(0o666)
    # It ends with this process, however that ends: nothing else holds the other end of its standard input.
    victim = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
    world = World({}, witness, outside, victim)
    abstract = f"microcoder-{os.getpid()}"
    tcp = world.listen("tcp", socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0))
    udp = world.listen("udp", socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0))
    for kind, end in ((socket.SOCK_STREAM, ""), (socket.SOCK_DGRAM, ".d")):
        world.listen("abstract" + end, socket.AF_UNIX, kind, f"\0{abstract}{end}")
        world.listen("unix" + end, socket.AF_UNIX, kind, str(work / f"s{end}"))
        (work / f"s{end}").chmod(0o777)
    package = Path(sys.modules["microcoder"].__file__ or "").parent
    world.names = {
        "HOME_WITNESS_NAME": witness.name, "HOME_WITNESS": str(witness), "HOME": str(home), "WITNESS_TEXT": WITNESS,
        "OUTSIDE_WITNESS": str(outside), "ANSWERS": str(work / "answers.jsonl"), "WORK": str(work),
        "PACKAGE_PARENT": str(package.parent), "VICTIM": str(victim.pid), "ABSTRACT": abstract,
        "TCP_PORT": str(tcp[1]), "UDP_PORT": str(udp[1]), "UNIX_PATH": str(work / "s"),
    }  # fmt: skip
    try:
        yield world
    finally:
        victim.kill()
        victim.communicate()
        for sock in world.sockets:
            sock.close()
        witness.unlink(missing_ok=True)


@dataclass
class Table:
    """A judge under attack, and what the machine looked like before."""

    layer: str
    judge: Judge
    scratch: Path
    others: set[int]  # processes that are not the judge's
    before: dict[str, Any]


def state(scratch: Path, others: set[int]) -> dict[str, Any]:
    """Everything that a candidate could leave behind."""
    family = descendants(os.getpid()) - others
    return {
        "processes": len(family),
        "descriptors": sorted(open_files(pid) for pid in family | {os.getpid()}),
        "files": sorted(os.listdir(scratch)) + sorted(os.listdir("/dev/shm")),
        "mounts": Path("/proc/self/mounts").read_text(),
        "ipc": [len(Path("/proc/sysvipc", name).read_text().splitlines()) for name in ("shm", "msg", "sem")],
        "keys": [line for line in read("/proc/keys").splitlines() if "kept" in line or "microcoder" in line],
        "zombies": sum(read(f"/proc/{pid}/stat").rpartition(")")[2].startswith(" Z") for pid in family),
    }


TOOLS = {"cpp": "g++", "java": "javac", "javascript": "node", "go": "go", "rust": "rustc"}


@functools.cache
def missing(language: str, layer: str) -> str:
    """Why a language cannot be judged here, "" if it can."""
    try:
        languages.toolchain(language, layer)
    except NoCompiler as error:
        return str(error)
    return ""


def there(layer: str) -> list[str]:
    return ["python", *(language for language in TOOLS if not missing(language, layer))]


def all_up(layer: str) -> int:
    """Two workers, each with the zygotes for plain programs, for those with numpy, and for each other language."""
    return 2 * (2 + len(there(layer)))


HEAVY = {
    "python": "import numpy, time\ntime.sleep(0.3)\nprint(int(input()) ** 2)\n",
    "cpp": """
        #include <cstdio>
        #include <unistd.h>
        int main() { int n; usleep(300000); scanf("%d", &n); printf("%d", n * n); }
    """,
    "java": """
        class Main { public static void main(String[] args) throws Exception {
            Thread.sleep(300); int n = new java.util.Scanner(System.in).nextInt(); System.out.println(n * n); } }
    """,
    "go": """
        package main
        import ("fmt"; "time")
        func main() { var n int; time.Sleep(300 * time.Millisecond); fmt.Scan(&n); fmt.Println(n * n) }
    """,
    "rust": """
        fn main() {
            let mut line = String::new();
            std::thread::sleep(std::time::Duration::from_millis(300));
            std::io::stdin().read_line(&mut line).unwrap();
            println!("{}", line.trim().parse::<i64>().unwrap().pow(2));
        }
    """,
    "javascript": "setTimeout(() => console.log(require('fs').readFileSync(0, 'utf8') ** 2), 300)",
}
BUILD = {  # without a sandbox: (the file, what compiles it, what runs it)
    "python": ("attack.py", [], [sys.executable, "attack.py"]),
    "cpp": ("attack.cpp", ["g++", "-w", "-pthread", "attack.cpp", "-o", "attack"], ["./attack"]),
    "java": ("Main.java", ["javac", "-nowarn", "Main.java"], ["java", "Main"]),
    "go": ("attack.go", ["go", "build", "attack.go"], ["./attack"]),
    "rust": ("attack.rs", ["rustc", "--edition=2021", "attack.rs"], ["./attack"]),
    "javascript": ("attack.js", [], ["node", "attack.js"]),
}


def settled(judge: Judge, scratch: Path, others: set[int], as_before: dict[str, Any] | None = None) -> dict[str, Any]:
    """The state at rest: whatever worker is new or was replaced has both its zygotes, and no box is being cleared."""
    last = as_before or {}
    for _ in range(200):  # a machine that is busy with other tests needs many
        now = state(scratch, others)
        if now["processes"] < all_up(
            judge.sandbox
        ):  # a pair that sleeps keeps both workers busy, unless one is still starting
            for language in there(judge.sandbox):
                heavy = Solution("plain", code=HEAVY[language], language=language)
                for future in [judge.submit(PLAIN, heavy) for _ in range(2)]:
                    future.result()
        elif now["processes"] == all_up(judge.sandbox) and now == last:
            break
        last = as_before or now
        time.sleep(0.1)
    return state(scratch, others)


def read(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""


def descendants(pid: int) -> set[int]:
    found: set[int] = set()
    for task in [int(t) for t in os.listdir(f"/proc/{pid}/task")] if os.path.exists(f"/proc/{pid}/task") else []:
        for child in map(int, read(f"/proc/{pid}/task/{task}/children").split()):
            found |= {child} | descendants(child)
    return found


def open_files(pid: int) -> int:
    try:
        return len(os.listdir(f"/proc/{pid}/fd"))
    except OSError:  # a zygote cannot be looked into, even by its user; its parent's descriptors are counted
        return -1


def layers() -> list[str]:
    return os.environ.get("MICROCODER_ATTACK_LAYERS", "full landlock").split()


@pytest.fixture(scope="module", params=layers())
def table(request: pytest.FixtureRequest, world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Table]:
    scratch = tmp_path_factory.mktemp("scratch")
    let_through(scratch, tmp_path_factory)
    # Orphans come to us instead of the machine's first process, so that `descendants` would see a daemon.
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
    before = descendants(os.getpid()) | {world.victim.pid}  # other tests' too, such as multiprocessing's tracker
    patch = pytest.MonkeyPatch()
    patch.setenv("TMPDIR", str(scratch))
    patch.setenv("MICROCODER_SECRET", WITNESS)
    patch.setattr(tempfile, "tempdir", str(scratch))
    try:
        judge = Judge(workers=2, time_limit_s=1, sandbox=request.param)
    except JudgeError as error:
        patch.undo()
        pytest.skip(f"the {request.param} sandbox does not work here: {error}")
    try:
        yield Table(request.param, judge, scratch, before, settled(judge, scratch, before))
    finally:
        judge.close(cancel=True)
        patch.undo()
    for pid in descendants(os.getpid()) - before:  # a killed worker's zygotes came to us: the dead are reaped
        if read(f"/proc/{pid}/stat").rpartition(")")[2].startswith(" Z"):
            os.waitpid(pid, os.WNOHANG)
    left = {pid: read(f"/proc/{pid}/cmdline") for pid in descendants(os.getpid()) - before}
    assert left == {}, "something lives on after the judge was closed"
    assert os.listdir(scratch) == [], "files are left after the judge was closed"


def run(table: Table, world: World, attack: Attack) -> tuple[Verdict, float]:
    if attack.language not in there(table.layer):
        pytest.skip(missing(attack.language, table.layer))
    judge = table.judge
    if attack.first:
        for future in [judge.submit(PLAIN, code=world.fill(attack.first)) for _ in range(4)]:
            future.result(timeout=60)
    start = time.monotonic()
    if attack.completion is not None:
        future = judge.submit(attack.problem, attack.completion)
    else:
        code = world.fill(attack.code or "")
        future = judge.submit(attack.problem, Solution(attack.problem.id, code=code, language=attack.language))
    verdict = future.result(timeout=attack.within_s + 60)
    return verdict, time.monotonic() - start


def row(attack: Attack) -> Any:
    """An attack as a test's parameter. Compilers and runtimes start slowly: `make test-long` has these."""
    marks = [] if attack.language in ("python", "cpp") else [pytest.mark.long]
    return pytest.param(attack, id=attack.name, marks=marks)


@pytest.mark.parametrize("attack", [row(a) for a in ATTACKS if a.promised and not a.control])
def test_attack_fails(table: Table, world: World, attack: Attack) -> None:
    if attack.needs == "full" and table.layer != "full":
        pytest.skip("the reduced sandbox does not promise this")
    verdict, seconds = run(table, world, attack)
    assert not verdict.accepted, f"it got through: {verdict}"
    assert verdict.verdict in attack.verdicts, verdict.message
    assert not attack.says or world.fill(attack.says) not in verdict.message
    assert seconds < attack.within_s
    assert table.judge.submit(PLAIN, code="print(int(input()) ** 2)").result(timeout=60).accepted


@pytest.mark.parametrize("attack", [row(a) for a in ATTACKS if a.control])
def test_harmless_sibling_is_accepted(table: Table, world: World, attack: Attack) -> None:
    verdict, _ = run(table, world, attack)
    assert verdict.accepted, f"{verdict.verdict}: {verdict.message}"


@pytest.mark.parametrize("attack", [row(a) for a in ATTACKS if not a.promised])
def test_what_is_not_promised_is_written_down(table: Table, world: World, attack: Attack) -> None:
    text = (Path(__file__).parents[2] / "docs" / "explanation" / "judge.md").read_text("utf-8")
    assert attack.name.partition("/")[2] in text
    verdict, _ = run(table, world, attack)
    assert verdict.verdict != "internal_error"


def test_the_whole_table_leaves_nothing_behind(table: Table, world: World) -> None:
    assert table.before["processes"] == all_up(table.layer)
    assert settled(table.judge, table.scratch, table.others, table.before) == table.before


def test_files_of_the_user_are_untouched(table: Table, world: World) -> None:
    for path in (world.home, world.outside):
        assert path.read_text() == WITNESS
        assert path.stat().st_mode & 0o777 == 0o666
        assert path.stat().st_nlink == 1
    assert sorted(p.name for p in world.outside.parent.iterdir()) == ["answers.jsonl", "s", "s.d", "witness.txt"]


def test_processes_of_the_user_are_unharmed(table: Table, world: World) -> None:
    pid = world.victim.pid
    assert world.victim.poll() is None
    for limit in (resource.RLIMIT_NOFILE, resource.RLIMIT_CPU, resource.RLIMIT_AS, resource.RLIMIT_FSIZE):
        assert resource.prlimit(pid, limit) == resource.getrlimit(limit)
    assert os.getpriority(os.PRIO_PROCESS, pid) == os.getpriority(os.PRIO_PROCESS, 0)
    assert os.sched_getaffinity(pid) == os.sched_getaffinity(0)
    assert os.sched_getscheduler(pid) == os.SCHED_OTHER


def test_listeners_on_this_machine_heard_nothing(table: Table, world: World) -> None:
    assert world.heard == []


@pytest.mark.parametrize("attack", [row(a) for a in ATTACKS if a.bare])
def test_attack_works_where_nothing_stops_it(world: World, attack: Attack, tmp_path: Path) -> None:
    """Else the sandbox would get credit for an attack that cannot work anywhere."""
    if attack.language != "python" and shutil.which(TOOLS[attack.language]) is None:
        pytest.skip(f"there is no {TOOLS[attack.language]} here")
    file, build, code = BUILD[attack.language]
    (tmp_path / file).write_text(world.fill(attack.code or ""))
    if build:
        subprocess.run(build, cwd=tmp_path, check=True)
    heard, family = len(world.heard), descendants(os.getpid())
    case = attack.problem.tests[0]
    try:
        done = subprocess.run(code, input=case.input, capture_output=True, text=True, timeout=30, cwd=tmp_path)
        assert done.stdout == case.output, done.stderr
    finally:
        time.sleep(0.1)
        del world.heard[heard:]
        for pid in descendants(os.getpid()) - family:  # what it left came to us (see `table`)
            os.waitpid(pid, 0)


def test_there_are_enough_attacks_and_none_expects_to_be_accepted() -> None:
    attacks = [a for a in ATTACKS if not a.control]
    assert len(attacks) >= 75
    assert len({a.name for a in ATTACKS}) == len(ATTACKS)
    for attack in attacks:
        assert attack.verdicts and not {"accepted", "internal_error"} & set(attack.verdicts), attack.name
    assert all(a.verdicts == ["accepted"] for a in ATTACKS if a.control)


@pytest.mark.skipif(os.getuid() != 0, reason="the table runs as this user, who is not root, already")
@pytest.mark.skipif("MICROCODER_ATTACK_USER" not in os.environ, reason="takes minutes: make test-user")
def test_the_table_holds_for_an_ordinary_user(capsys: pytest.CaptureFixture[str]) -> None:
    python = interpreter_for_nobody()
    if python is None:
        why = closed_to_nobody(__file__) or closed_to_nobody(os.path.realpath(sys.executable))
        reason = f"the user nobody cannot enter {why}" if why else "no interpreter of this version works for nobody"
        what_to_do = "clone to a folder that everyone may enter, say below /opt, and `make test-user` there"
        with capsys.disabled():
            print(f"\n{'!' * 100}\nNOT TESTED: the attacks by an ordinary user: {reason}\n{what_to_do}\n{'!' * 100}")
        pytest.skip(f"NOT TESTED: {reason}; {what_to_do}")
    paths = [str(Path(__file__).parents[2]), *(p for p in sys.path if p.endswith("site-packages"))]
    # Not below pytest's own folder, whose permissions every other pytest of this user resets as it starts.
    with tempfile.TemporaryDirectory(dir="/tmp") as home:
        os.chown(home, NOBODY, NOBODY)
        options = ["-q", "--no-header", "--tb=line", "-p", "no:cacheprovider", "--basetemp", f"{home}/t"]
        done = subprocess.run(
            [python, "-m", "pytest", *options, __file__],
            user=NOBODY, group=NOBODY, extra_groups=[], cwd=home, capture_output=True, text=True,
            env={"HOME": home, "PATH": "/usr/bin:/bin", "PYTHONPATH": ":".join(paths), "PYTHONDONTWRITEBYTECODE": "1",
                 "MICROCODER_ATTACK_LAYERS": "full landlock", "MICROCODER_ATTACK_TOPICS": WHERE_THE_USER_MATTERS,
                 "MICROCODER_CACHE": "/dev/null"},  # no place for a precompiled header: it must do without
        )  # fmt: skip
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]


def closed_to_nobody(path: str) -> str:
    """The first folder on the way to a file that others than its owner may not enter; "" if there is none."""
    way = reversed(Path(path).absolute().parents)
    return next((str(folder) for folder in way if not folder.stat().st_mode & stat.S_IXOTH), "")


def test_the_folder_that_keeps_an_ordinary_user_out_is_named() -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as home:  # pytest's own folders are closed already
        mine = Path(home, "mine")
        (mine / "clone").mkdir(parents=True)
        os.chmod(home, 0o755)
        for mode, closed in ((0o700, str(mine)), (0o755, "")):
            mine.chmod(mode)
            assert closed_to_nobody(str(mine / "clone" / "file.py")) == closed


def interpreter_for_nobody() -> str | None:
    """This interpreter, or the system's of the same version if this one lies where nobody cannot go."""
    wanted = f"{sys.version_info[0]}.{sys.version_info[1]}"
    test = f"import sys, pytest; open({__file__!r}); sys.exit(not sys.version.startswith({wanted + '.'!r}))"
    paths = ":".join(p for p in sys.path if p.endswith("site-packages"))
    for python in (sys.executable, f"/usr/bin/python{wanted}", "/usr/local/bin/python3", "/usr/bin/python3"):
        try:
            done = subprocess.run(
                [python, "-c", test], user=NOBODY, group=NOBODY, extra_groups=[], cwd="/", env={"PYTHONPATH": paths},
                capture_output=True,
            )  # fmt: skip
        except OSError:
            continue
        if done.returncode == 0:
            return python
    return None
