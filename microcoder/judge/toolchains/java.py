"""Java: javac makes class files, which are packed into one jar; each test starts a JVM on it.

1. The memory limit is the heap's (-Xmx). What the JVM needs besides for itself is not the program's, see RUNTIME.
2. One processor, and so the serial collector: CPU time counts for all threads, and a collector with many would use up
   what the program has. Both compilers of the JVM are on: with the first alone, heavy programs take much longer.
3. The stack of the main thread has a quarter of the memory limit, at most 64 MB: at its end the JVM takes several times
   as much to say so. Threads have 8 MB, or what the program asks for, as those with deep recursion do.
4. The public class names the file, as javac demands; the class with `main` is run, whatever its name.

javac's own classes are kept ready (class data sharing) in 12 MB under MICROCODER_CACHE or ~/.cache/microcoder, which
saves a third of its time.
"""

from __future__ import annotations

import io
import os
import re
import struct
import subprocess
import zipfile
from collections.abc import Iterator
from typing import Any

from ..boxes import Launch, Limits, Toolchain
from ..sandbox.native import ENTRY
from . import ONE_HEAP, Language, NoCompiler, kept, loaders, said

RUNTIME = 160 << 20  # of memory, for the JVM: its code, the program's compiled code, classes, the collector's tables
RESERVED = 3 << 29  # of address space: 1 GB for classes, 240 MB for compiled code
MOST_STACK = 64 << 20
MOST_CLASSES = 16 << 20
LONGEST_NAME = 200  # bytes, of a class: files can have 255
ENVIRONMENT = (*ONE_HEAP, "LC_ALL=C.UTF-8")  # names of classes are names of files, and need not be ASCII
QUIET = ("-XX:-UsePerfData", "-XX:-PrintWarnings", "-Xlog:disable", "-Xshare:auto", "-XX:+UseSerialGC")
ONE = ("-XX:ActiveProcessorCount=1", "-XX:-UseContainerSupport")
JAVAC = ("-XX:TieredStopAtLevel=1", "-Xmx512m", "-Xss16m")
COMPILE = ("-m", "jdk.compiler/com.sun.tools.javac.Main", "-proc:none", "-nowarn", "-encoding", "UTF-8",
           "-Xmaxerrs", "3", "-implicit:none", "-d", ".")  # fmt: skip
WARM = """import java.io.*; import java.util.*; import java.util.function.*; import java.util.stream.*;
public class Main { record P(int a, long b) {} interface F { int f(int x); } enum E { A, B }
public static void main(String[] args) throws IOException { Scanner s = new Scanner(System.in); int[] a = new int[9];
BufferedReader r = new BufferedReader(new InputStreamReader(System.in)); StringBuilder b = new StringBuilder();
Map<Integer, List<String>> m = new HashMap<>(); for (var e : m.entrySet()) b.append(e.getKey()).append('x');
PriorityQueue<long[]> q = new PriorityQueue<>((x, y) -> Long.compare(x[0], y[0])); F f = x -> x + 1;
Arrays.stream(a).map(x -> f.f(x)).boxed().sorted(Comparator.reverseOrder()).collect(Collectors.toList());
switch (E.A) { case A: break; default: throw new RuntimeException("" + new P(1, 2)); } System.out.println(b); } }
"""
# What javac would not read as code.
BESIDES = re.compile(r'//[^\n]*|/\*.*?\*/|""".*?"""|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
PUBLIC = re.compile(r"\bpublic\s+(?:(?:final|abstract|sealed|strictfp)\s+)*(?:class|interface|enum|record)\s+(\w+)")


class Java(Language):
    name, title = "java", "Java"
    install = "install a JDK (Debian, Ubuntu: apt-get install default-jdk-headless; Fedora: dnf install java-devel)"
    trial = 'class Main { public static void main(String[] args) { System.out.println("1"); } }\n'
    reserved = RESERVED
    runtime_bytes = RUNTIME

    def find(self, layer: str) -> Toolchain:
        """The JDK that javac on the PATH belongs to, with what its links lead to."""
        javac = self.tool("javac")
        try:
            home, version = _properties(javac, "java.home", "java.vm.version")
        except (OSError, KeyError, subprocess.CalledProcessError) as error:
            raise NoCompiler(f"{javac} does not work: {error}; {self.install}") from None
        home = os.path.realpath(home)
        java = os.path.join(home, "bin", "java")
        folders = (home, *sorted(set(_outside(home))))
        self.open_to_boxes(layer, [home])
        ready, shown = kept("java", f"{version}{home}{QUIET}{ONE}{JAVAC}{COMPILE}{WARM}", _archive(java), layer)
        shared = [f"-XX:SharedArchiveFile={shown}/javac.jsa"] if shown else []
        step = (java, *QUIET, *ONE, *JAVAC, *shared, *COMPILE)
        return Toolchain((step,), (java, *loaders()), folders, ready, ENVIRONMENT)

    def order(self, tools: Toolchain, source: str) -> dict[str, Any]:
        name = public_class(source) or "Main"
        file = f"{name if len(name.encode()) <= LONGEST_NAME else 'Main'}.java"
        return {"file": file, "steps": [[*step, file] for step in tools.steps], "result": ".class"}

    def made(self, output: bytes, source: str) -> bytes:
        """A jar with the classes, which names the one to start."""
        if len(output) > MOST_CLASSES:
            raise ValueError(f"its classes take over {MOST_CLASSES >> 20} MB")
        files = dict(_entries(output))
        ways = {name: way_to_start(content) for name, content in files.items()}
        mains = [name for name, way in ways.items() if way and way == max(ways.values())]
        if not mains:
            raise ValueError("no class has a method `public static void main(String[] args)`")
        first = (public_class(source), "Main")
        mains.sort(key=lambda name: (*(name.rpartition("/")[2] != one for one in first), source.find(f"class {name}")))
        jar = io.BytesIO()
        with zipfile.ZipFile(jar, "w") as archive:
            manifest = f"Manifest-Version: 1.0\nMain-Class: {mains[0].replace('/', '.')}\n"
            archive.writestr("META-INF/MANIFEST.MF", _folded(manifest))
            for name, content in files.items():
                archive.writestr(f"{name}.class", content)
        return jar.getvalue()

    def launch(self, tools: Toolchain, limits: Limits) -> Launch:
        heap = limits.memory_bytes - limits.runtime_bytes
        sizes = (f"-Xmx{heap >> 10}k", f"-Xss{min(heap // 4, MOST_STACK) >> 10}k", "-XX:ThreadStackSize=8192")
        words = ("-Dfile.encoding=UTF-8", "-Dstdout.encoding=UTF-8", "-Dstderr.encoding=UTF-8", "-DONLINE_JUDGE=true")
        java = tools.programs[0]
        return Launch(
            (java, *QUIET, *ONE, *sizes, *words, "-jar", "solution.jar"), "solution.jar", ENVIRONMENT, RESERVED
        )


def public_class(source: str) -> str:
    """The first public class of a program, "" if there is none."""
    found = PUBLIC.search(BESIDES.sub(" ", source))
    return found[1] if found else ""


def _properties(javac: str, *names: str) -> list[str]:
    """What the JDK says about itself. Its folder is not always that of javac on the PATH, which may be a script."""
    shown = said(javac, "-J-XshowSettings:properties", "-version")
    rows = [line.strip().partition(" = ") for line in shown.splitlines()]
    found = {name: value for name, _, value in rows if value}
    return [found[name] for name in names]


def _outside(home: str) -> Iterator[str]:
    """The folders, outside of a JDK, of the files that links in it lead to: Debian keeps settings in /etc."""
    for folder, _, names in os.walk(home):
        for path in (os.path.join(folder, name) for name in names):
            if os.path.islink(path) and not (target := os.path.realpath(path)).startswith(home + "/"):
                if os.path.exists(target):
                    yield os.path.dirname(target)


def _archive(java: str) -> Any:
    def make(folder: str) -> None:
        source, archive = os.path.join(folder, "Main.java"), os.path.join(folder, "javac.jsa")
        with open(source, "w") as file:
            file.write(WARM)
        options = [*QUIET, *ONE, *JAVAC, f"-XX:ArchiveClassesAtExit={archive}"]
        subprocess.run([java, *options, *COMPILE, source], check=True, capture_output=True, cwd=folder)
        if not os.path.exists(archive):
            raise FileNotFoundError(archive)

    return make


def _folded(manifest: str) -> bytes:
    """Lines of a manifest have at most 72 bytes; a longer one goes on after a space."""
    lines = []
    for line in manifest.encode().splitlines():
        lines.append(line[:72])
        lines += [b" " + line[at : at + 71] for at in range(72, len(line), 71)]
    return b"\n".join(lines) + b"\n"


def _entries(output: bytes) -> Iterator[tuple[str, bytes]]:
    """(name without its ending, content) of each class file."""
    at = 0
    while at < len(output):
        try:
            name, size = ENTRY.unpack_from(output, at)
        except struct.error:
            raise ValueError("its classes are too large") from None
        at += ENTRY.size + name + size
        if at > len(output):
            raise ValueError("its classes are too large")
        path = output[at - size - name : at - size].decode("utf-8", "replace")
        yield path.removeprefix("./").removesuffix(".class"), output[at - size : at]


def way_to_start(content: bytes) -> int:
    """2 if a class file has the usual `main`, 1 if it has another, as the newest versions can start with, else 0."""
    try:
        mains = [(access, kind) for access, name, kind in _methods(content) if name == b"main"]
    except (struct.error, IndexError, KeyError):
        return 0
    return 2 if any(access & 9 == 9 and kind == b"([Ljava/lang/String;)V" for access, kind in mains) else len(mains[:1])


CONSTANTS = {3: 4, 4: 4, 5: 8, 6: 8, 7: 2, 8: 2, 9: 4, 10: 4, 11: 4, 12: 4, 15: 3, 16: 2, 17: 4, 18: 4, 19: 2, 20: 2}


def _methods(content: bytes) -> Iterator[tuple[int, bytes, bytes]]:
    """(flags, name, type) of each method of a class file."""
    texts: dict[int, bytes] = {}
    (count,) = struct.unpack_from("!H", content, 8)
    at, number = 10, 1
    while number < count:
        kind = content[at]
        if kind == 1:
            (size,) = struct.unpack_from("!H", content, at + 1)
            texts[number] = content[at + 3 : at + 3 + size]
            at += 3 + size
        else:
            at += 1 + CONSTANTS[kind]
        number += 2 if kind in (5, 6) else 1  # a long or a double takes two numbers
    (interfaces,) = struct.unpack_from("!H", content, at + 6)
    at += 8 + 2 * interfaces
    for of_methods in (False, True):  # the fields come first
        (members,) = struct.unpack_from("!H", content, at)
        at += 2
        for _ in range(members):
            access, name, kind, attributes = struct.unpack_from("!HHHH", content, at)
            at += 8
            for _ in range(attributes):
                at += 6 + struct.unpack_from("!I", content, at + 2)[0]
            if of_methods:
                yield access, texts[name], texts[kind]
