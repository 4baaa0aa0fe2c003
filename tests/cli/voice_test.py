#!/usr/bin/env python3
"""All commands speak with one voice: help, man pages, completion and mistakes of every command there is.

Commands are found through `--help`, so that a new one is tested as soon as it is listed.

    voice_test.py --tool PATH/diapason [VoiceTest.test_...]
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from dataclasses import dataclass, field
from pathlib import Path

TOOL = "diapason"
LIMIT = 600

# One name means one thing: the placeholder an option has wherever it is there. nccl-tests names some of
# bench's, and the exceptions say why they are none.
SAME = {
    "--json": "", "--quiet": "", "--output": None, "--store": "STORE", "--seed": "N", "--sizes": "SIZES", "--size": "SIZE",
    "--library": "NAME", "--library-version": "VERSION", "--library-file": "FILE", "--limit": "TIME", "--timeout": "TIME",
    "--budget": "TIME", "--policy": "FILE", "--model": "FILE", "--collective": "NAME", "--backend": "NAME", "--margin": "SHARE",
    "--pid": "PID", "--datatype": "NAME", "--interval": "TIME", "--verbose": "", "--all": None, "--root": None, "--baseline": "FILE",
}
LETTERS = {"--quiet": "-q", "--output": "-o", "--verbose": "-v", "--help": "-h"}
# Names of before, and of other tools, which nothing has any more.
GONE = {"--out", "--report", "--version-of-library", "--as", "--min-gain", "--bytes", "--type", "--perfetto"}


@dataclass
class Option:
    names: list[str]
    value: str
    text: str


@dataclass
class Help:
    text: str
    summary: str = ""
    options: list[Option] = field(default_factory=list)
    arguments: list[str] = field(default_factory=list)
    commands: list[str] = field(default_factory=list)
    examples: list[str] = field(default_factory=list)


def run(*words: str, status: int | None = 0, **more) -> subprocess.CompletedProcess:
    done = subprocess.run([TOOL, *words], capture_output=True, text=True, timeout=LIMIT, check=False, **more)
    if status is not None and done.returncode != status:
        raise AssertionError(f"diapason {' '.join(words)}: status {done.returncode}, not {status}\n{done.stdout}{done.stderr}")
    return done


def parse(text: str) -> Help:
    """What a help text says. Entries start with two blanks, titles with none, and end with a colon."""
    result = Help(text)
    blocks = text.split("\n\n")
    result.summary = blocks[1].replace("\n", " ") if len(blocks) > 1 else ""
    title = ""
    for line in text.splitlines():
        if line and not line.startswith(" "):
            title = line.rstrip(":") if line.endswith(":") else ""
            continue
        if not title or not line.startswith("  "):
            continue
        if title == "Examples":
            if result.examples and result.examples[-1].endswith(" \\"):
                result.examples[-1] = result.examples[-1][:-1] + line.strip()
            elif re.match(r"^  \S", line):
                result.examples.append(line.strip())
            continue
        entry = re.match(r"^  (?:    )?((?:-[a-zA-Z], )?--[a-z_-]+(?:, --[a-z_-]+)*)(?: (\S+))?(?:\s{2,}(.*))?$", line)
        if entry:
            result.options.append(Option(entry[1].split(", "), entry[2] or "", entry[3] or ""))
        elif title == "Arguments":
            if re.match(r"^  [A-Z]", line):
                result.arguments.append(line.split()[0])
        elif title == "Exit status":
            continue
        elif re.match(r"^  [a-z]+(\s{2,}|$)", line):
            result.commands.append(line.split()[0])
        elif result.options and line.startswith(" " * 30):
            result.options[-1].text += " " + line.strip()
    return result


def walk(path: tuple[str, ...] = ()) -> dict[tuple[str, ...], Help]:
    found = {path: parse(run(*path, "--help").stdout)}
    for name in found[path].commands:
        found.update(walk((*path, name)))
    return found


class VoiceTest(unittest.TestCase):
    commands: dict[tuple[str, ...], Help]

    @classmethod
    def setUpClass(cls) -> None:
        cls.commands = walk()

    def each(self):
        for path, text in self.commands.items():
            self.where = " ".join(("diapason", *path))
            yield path, text

    def _formatMessage(self, msg, standardMsg):  # noqa: N802, N803 (unittest's names)
        return f"{getattr(self, 'where', '')}: {super()._formatMessage(msg, standardMsg)}"

    def test_all_are_found(self) -> None:
        for path in [("ask",), ("env", "check"), ("bench", "iteration"), ("data", "import"), ("doctor", "compare"), ("man",)]:
            self.assertIn(path, self.commands)
        self.assertGreater(len(self.commands), 35)

    def test_help_is_complete(self) -> None:
        for path, text in self.each():
            self.assertTrue(text.text.startswith("Usage: diapason"), text.text[:80])
            self.assertRegex(text.summary, r"^[A-Z].*[\w)]\.$")
            self.assertTrue(text.examples, "no example")
            self.assertLessEqual(max(map(len, text.text.splitlines())), 80, "wider than 80 columns")
            for option in text.options:
                self.assertTrue(option.text.strip(), f"{option.names} has no text")
                self.assertNotIn("TEXT:", option.text)
            names = [name for option in text.options for name in option.names]
            self.assertEqual(len(names), len(set(names)), "a name twice")
            self.assertIn("--help", names)

    def test_examples_are_read(self) -> None:
        """The commands and options of every example are there."""
        for path, text in self.each():
            for example in text.examples:
                for words in re.findall(r"diapason ([^|)\"';<>]*)", example):
                    at: tuple[str, ...] = ()
                    for word in words.split():
                        if word == "--":
                            break
                        if (*at, word) in self.commands:
                            at = (*at, word)
                        elif word.startswith("--"):
                            known = [name for option in self.commands[at].options for name in option.names]
                            self.assertIn(word.split("=")[0], known, example)
                    if path:
                        self.assertTrue(at, example)

    def test_one_name_for_one_thing(self) -> None:
        for path, text in self.each():
            for option in text.options:
                for name in option.names:
                    self.assertNotIn(name, GONE)
                    if SAME.get(name) is not None:
                        self.assertEqual(option.value.rstrip("."), SAME[name], name)
                    if name in LETTERS:
                        self.assertIn(LETTERS[name], option.names)
                    if name == "-o" and path[:1] not in (("bench",), ("sweep",)):
                        self.assertIn("--output", option.names)
                    self.assertNotIn("_", name.replace("--warmup_iters", ""))  # that is nccl-tests'

    def test_those_that_show_print_json(self) -> None:
        """All but those that only write files or start programs."""
        without = {(), ("policy", "convert"), ("policy", "env"), ("journal", "export"), ("launch",), ("serve",),
                   ("data", "import"), ("data", "export"), ("data", "merge"), ("settings",), ("help",), ("man",), ("completion",)}
        for path, text in self.each():
            if text.commands and not text.arguments and path != ("doctor",) or path in without:
                continue
            self.assertIn("--json", [name for option in text.options for name in option.names])

    def test_man_pages(self) -> None:
        with tempfile.TemporaryDirectory(prefix="diapason-voice-") as folder:
            run("man", "--all", folder)
            self.assertEqual(sorted(os.listdir(folder)), sorted("-".join(("diapason", *path)) + ".1" for path in self.commands))
            for path, text in self.each():
                file = Path(folder) / ("-".join(("diapason", *path)) + ".1")
                page = file.read_text()
                self.assertEqual(page, run("man", *path).stdout)
                plain = page.replace("\\-", "-").replace("\\fB", "").replace("\\fR", "").replace("\\fI", "")
                for option in text.options:
                    self.assertIn(", ".join(option.names), plain)
                for example in text.examples:
                    escaped = example.replace("'", "\\(aq").replace("~", "\\(ti")
                    self.assertIn(escaped, re.sub(r" \\e\n +", " ", plain))
                self.typeset(file)

    def typeset(self, file: Path) -> None:
        if shutil.which("groff"):
            done = subprocess.run(["groff", "-ww", "-b", "-z", "-man", "-Tutf8", str(file)], capture_output=True, text=True,
                                  timeout=LIMIT, check=True)
            self.assertEqual(done.stderr, "")
        if shutil.which("man"):
            done = subprocess.run(["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z", str(file)], capture_output=True, text=True,
                                  timeout=LIMIT, check=True, env={**os.environ, "MANROFFSEQ": "", "MANWIDTH": "80", "LC_ALL": "C.UTF-8"})
            self.assertEqual(done.stderr, "")
        if shutil.which("lexgrog"):
            done = subprocess.run(["lexgrog", str(file)], capture_output=True, text=True, timeout=LIMIT, check=True)
            self.assertIn(f'"{file.stem} - ', done.stdout)

    def complete(self, *words: str) -> list[str]:
        """What bash offers for the last word."""
        script = (f'source <("$1" completion bash); shift; COMP_WORDS=(diapason "$@"); COMP_CWORD=$#; COMPREPLY=(); '
                  f'_diapason 2>/dev/null; printf "%s\\n" "${{COMPREPLY[@]}}"')
        done = subprocess.run(["bash", "-c", script, "bash", TOOL, *words], capture_output=True, text=True, timeout=LIMIT, check=True)
        return done.stdout.split()

    def test_bash_completion(self) -> None:
        script = run("completion", "bash").stdout
        subprocess.run(["bash", "-n"], input=script, text=True, check=True, timeout=LIMIT)
        if shutil.which("shellcheck"):
            done = subprocess.run(["shellcheck", "-s", "bash", "-"], input=script, capture_output=True, text=True, check=False, timeout=LIMIT)
            self.assertEqual(done.stdout, "")
        self.assertIn("bench", self.complete("be"))
        self.assertEqual(self.complete("env", ""), ["check", "plan", "tune"])
        self.assertEqual(self.complete("env", "ch"), ["check"])
        self.assertEqual(self.complete("sweep", "--search", "a"), ["adaptive"])
        self.assertEqual(self.complete("sweep", "--search", "=", "a"), ["adaptive"])
        self.assertEqual(self.complete("bench", "-g", "4", "--backend", "gl"), ["gloo"])
        self.assertIn("iteration", self.complete("bench", ""))
        self.assertIn("allreduce", self.complete("bench", ""))
        self.assertEqual(self.complete("ask", "--collective", "allreduce,bro"), ["allreduce,broadcast"])
        self.assertEqual(self.complete("watch", "--count", ""), [])
        # The value of an option is no command.
        self.assertIn("--store", self.complete("bench", "--store", "pairs", "--st"))
        with tempfile.TemporaryDirectory(prefix="diapason-voice-") as folder:
            (Path(folder) / "one.conf").write_text("")
            (Path(folder) / "two").mkdir()
            self.assertEqual(self.complete("bench", "--policy", f"{folder}/o"), [f"{folder}/one.conf"])
            self.assertEqual(self.complete("man", "--all", f"{folder}/"), [f"{folder}/two"])
            self.assertEqual(sorted(self.complete("policy", "check", f"{folder}/")), [f"{folder}/one.conf", f"{folder}/two"])
            self.assertEqual(self.complete("launch", "-n", "2", "--", f"{folder}/o"), [])
            self.assertEqual(self.complete("launch", "-n", "2", "--", "cat", f"{folder}/o"), [f"{folder}/one.conf"])

    def test_completion_has_all(self) -> None:
        scripts = {shell: run("completion", shell).stdout for shell in ("bash", "zsh", "fish")}
        for path, text in self.each():
            if path:
                self.assertIn(f"'{' '.join(path)}'", scripts["fish"])
                self.assertIn(f"_{'_'.join(('diapason', *path))}() {{", scripts["zsh"])
            offered = self.complete(*path, "-")
            for option in text.options:
                for name in option.names:
                    self.assertIn(name, offered)
                    self.assertIn(f"{name}[", scripts["zsh"])
                    self.assertRegex(scripts["fish"], rf" -[ls] {name.lstrip('-')}( |$)")

    def test_completion_keeps_text_behind_a_colon(self) -> None:
        zsh = run("completion", "zsh").stdout
        self.assertIn("--section[Show this section instead of the verdict and the findings\\: verdict, findings, read", zsh)
        self.assertIn("'doctor:Find problems of this machine that affect collectives: GPUs, links", zsh)
        # In brackets, zsh takes a colon that is not escaped for the end of the description.
        for text in re.findall(r"^    '[^\[\n]*\[((?:[^\]\\\n]|\\.)*)\]", zsh, re.M):
            self.assertNotRegex(text, r"(?<!\\):")
        self.assertIn("'Show this section instead of the verdict and the findings: verdict, findings, read", run("completion", "fish").stdout)

    def test_zsh_and_fish(self) -> None:
        for shell, arguments in (("zsh", ["-n"]), ("fish", ["--no-execute"])):
            if not shutil.which(shell):
                continue
            with tempfile.NamedTemporaryFile("w", suffix="." + shell) as file:
                file.write(run("completion", shell).stdout)
                file.flush()
                done = subprocess.run([shell, *arguments, file.name], capture_output=True, text=True, timeout=LIMIT, check=False)
                self.assertEqual((done.returncode, done.stderr), (0, ""))
        if shutil.which("fish"):
            with tempfile.TemporaryDirectory(prefix="diapason-voice-") as home:
                script = f"{TOOL} completion fish | source; complete -C 'diapason env ch'"
                done = subprocess.run(["fish", "-c", script], capture_output=True, text=True, timeout=LIMIT, check=True,
                                      env={**os.environ, "HOME": home})
                self.assertTrue(done.stdout.startswith("check\t"), done.stdout)

    def test_mistakes(self) -> None:
        for words, error, see in [
            (["env", "chek"], "unknown command 'chek' of env; did you mean 'check'?", "diapason env"),
            (["env", "chek", "--help"], "unknown command 'chek' of env; did you mean 'check'?", "diapason env"),
            (["bnech"], "unknown command 'bnech'; did you mean 'bench'?", "diapason"),
            (["env"], "diapason env needs a command; there are check, plan, tune", "diapason env"),
            (["sweep", "--sise", "1K"], "unknown option '--sise' of sweep; did you mean '--sizes'?", "diapason sweep"),
            (["sweep", "--sise=1K"], "unknown option '--sise' of sweep; did you mean '--sizes'?", "diapason sweep"),
            (["doctor", "--library", "x"], "unknown option '--library' of doctor; did you mean '--library-file'?", "diapason doctor"),
            (["doctor", "--out", "x"], "unknown option '--out' of doctor; did you mean '--output'?", "diapason doctor"),
            (["env", "check", "--version", "2.28.9"],
             "unknown option '--version' of env check; did you mean '--library-version'?", "diapason env check"),
            (["logs"], "FILE is required", "diapason logs"),
            (["sweep", "--sizes"], "--sizes needs a value", "diapason sweep"),
            (["bench", "--json=x", "--csv"], "--json takes no value", "diapason bench"),
            (["bench", "--json", "--csv"], "--json and --csv cannot be used together", "diapason bench"),
            (["bench", "-g", "none"], "--ranks: 'none' is not a whole number", "diapason bench"),
            (["train", "--seed", "-1", "--data", "x", "-o", "y"], "--seed: '-1' is not a whole number", "diapason train"),
            (["sweep", "--search", "adaptiv"], "--search: unknown value 'adaptiv'; did you mean 'adaptive'?", "diapason sweep"),
            (["sweep", "--budget", "5 apples"], "--budget: '5 apples' is not a time such as 90s, 5m, 1.5h or 500ms", "diapason sweep"),
            (["settings", "now"], "'now' was not expected by settings", "diapason settings"),
            (["plan", "--workload", "x", "--data", "y"], "--workload needs --overlap", "diapason plan"),
            (["launch", "-n", "2", "true"], "put -- before the command: diapason launch -n 4 -- true", "diapason launch"),
            (["launch", "-n", "2", "--envv", "A=1", "--", "true"], "unknown option '--envv' of launch; did you mean '--env'?",
             "diapason launch"),
        ]:
            with self.subTest(" ".join(words)):
                done = run(*words, status=2)
                if "--json" not in words:
                    self.assertEqual(done.stdout, "")
                self.assertEqual(done.stderr, f"diapason: error: {error}\nSee {see} --help\n")
        done = run(status=2)
        self.assertIn("diapason: error: no command; there are ", done.stderr)
        done = run("man", "bench", "iterations", status=2)
        self.assertIn("unknown command 'iterations' of bench; did you mean 'iteration'?", done.stderr)

    def test_wrong_values(self) -> None:
        """A value that is wrong whatever the machine and the files are is a wrong command line; nothing is started."""
        for line, start in [
            ("bench foo", "COLLECTIVE: unknown collective 'foo'"),
            ("bench -d foo", "--datatype: unknown data type 'foo'; known are float, double, half"),
            ("bench -d float,foo", "--datatype: unknown data type 'foo'"),
            ("bench -o foo", "--op: unknown reduction 'foo'"),
            ("bench -b x", "--minbytes: "),
            ("bench --sizes x", "--sizes: "),
            ("bench --backend foo", "--backend: unknown value 'foo'; known are auto, nccl"),
            ("bench -g 2 --backend sim --cluster foo", "--cluster: unknown cluster 'foo'"),
            ("bench iteration foo", "PRESET: "),
            ("bench iteration --backend all", "--backend: unknown value 'all'"),
            ("bench iteration -d foo", "--datatype: unknown data type 'foo'"),
            ("bench iteration --compute x", "--compute: "),
            ("bench pairs -b x", "--size: "),
            ("ask --collective foo", "--collective: unknown collective 'foo'"),
            ("ask --collective allreduce,foo", "--collective: unknown collective 'foo'"),
            ("ask --library foo", "--library: unknown library 'foo'"),
            ("ask --library gloo", "--library: only nccl and rccl load a tuner plugin"),
            ("ask --sizes x", "--sizes: "),
            ("ask --api v9", "--api: 'v9' is not a tuner API version; the known versions are v1 to v7"),
            ("simulate h100x8 --collective foo", "--collective: unknown collective 'foo'"),
            ("simulate foo", "CLUSTER: unknown cluster 'foo'"),
            ("simulate --show", "--show: needs the name of a cluster"),
            ("plan --data x --collective foo", "--collective: unknown collective 'foo'"),
            ("plan --data x --library foo", "--library: unknown library 'foo'"),
            ("plan --data x --margin x", "--margin: "),
            ("plan --data x --confidence 10%", "--confidence: a confidence below 50%"),
            ("plan --data x --tolerance x", "--tolerance: "),
            ("train --data x -o y --objective foo", "--objective: "),
            ("train --data x -o y --test-split x", "--test-split: "),
            ("evaluate --data x --leave-out foo", "--leave-out: "),
            ("predict --model x --collective foo --nodes 1 --ranks 8 --size 1M", "--collective: unknown collective 'foo'"),
            ("predict --model x --collective allreduce --nodes 1 --ranks 8 --size x", "--size: "),
            ("data show x --library foo", "--library: unknown library 'foo'"),
            ("data show x --size x", "--size: "),
            ("data show x --kind foo", "--kind: unknown value 'foo'; known are collective, iteration"),
            ("data show x --collective foo", "--collective: unknown collective 'foo'"),
            ("data import --store x", "nothing to import: "),
            ("data import --store x y --datatype foo", "--datatype: unknown data type 'foo'; known are float, double, half"),
            ("data merge x", "merging needs two stores, or -o"),
            ("policy check x --library foo", "--library: unknown library 'foo'"),
            ("policy convert x --to foo", "--to: unknown library 'foo'"),
            ("env plan --goal foo", "--goal: "),
            ("env plan --goal cpu --format foo", "--format: "),
            ("env tune --metric-pick foo -- true", "--metric-pick: "),
            ("knobs --group foo", "--group: there is no group 'foo'"),
            ("man foo", "unknown command 'foo'"),
            ("doctor compare x", "nothing to compare: give at least two reports"),
            ("logs --section foo x", "--section: unknown value 'foo'"),
        ]:
            with self.subTest(line):
                words = line.split()
                at: tuple[str, ...] = ()
                while words[len(at):] and (*at, words[len(at)]) in self.commands:
                    at = (*at, words[len(at)])
                self.check_mistake(at, words, start)

    def check_mistake(self, path: tuple[str, ...], words: list[str], start: str) -> None:
        done = run(*words, status=2)
        self.assertEqual(done.stdout, "")
        self.assertTrue(done.stderr.startswith(f"diapason: error: {start}"), done.stderr)
        self.assertTrue(done.stderr.endswith(f"\nSee {' '.join(('diapason', *path))} --help\n"), done.stderr)
        self.assertEqual(done.stderr.count("error:"), 1, done.stderr)
        if "--json" in [name for option in self.commands[path].options for name in option.names]:
            done = run(*path, "--json", *words[len(path):], status=2)
            self.assertTrue(json.loads(done.stdout)["error"].startswith(start), done.stdout)

    def test_empty_names(self) -> None:
        """No option and no argument that names a file, a store or a folder takes an empty name."""
        for path, text in self.each():
            for option in text.options:
                if re.search("FILE|STORE|DIR", option.value):
                    with self.subTest(option.names):
                        done = run(*path, f"{option.names[-1]}=", status=2, stdin=subprocess.DEVNULL)
                        self.assertIn(f"{option.names[-1]}", done.stderr)
        for words in (["bench", "--store", ""], ["sweep", "--store", ""], ["man", "--all", ""], ["doctor", "-o", ""],
                      ["data", "show", ""], ["logs", ""]):
            with self.subTest(" ".join(words)):
                self.assertIn(": the name is empty\nSee diapason ", run(*words, status=2).stderr)

    def test_dash_is_standard_output_or_refused(self) -> None:
        for words in (["doctor", "-o", "-"], ["env", "tune", "-o", "-", "--", "true"], ["train", "--data", "x", "-o", "-"]):
            with self.subTest(" ".join(words)):
                self.assertIn("--output: give a file name; /dev/stdout is standard output\n", run(*words, status=2).stderr)
        with tempfile.TemporaryDirectory(prefix="diapason-voice-") as folder:
            policy = Path(folder) / "one.conf"
            policy.write_text("allreduce,0,1024,tree,ll,1,1,8\n")
            self.assertEqual(run("policy", "convert", str(policy), "-o", "-", cwd=folder).stdout,
                             run("policy", "convert", str(policy)).stdout)
            self.assertEqual(os.listdir(folder), ["one.conf"])

    def test_asks_for_the_shape_of_a_recorded_job(self) -> None:
        journal = str(Path(__file__).resolve().parents[1] / "data" / "journal_4ranks.jsonl")
        done = run("ask", "--json", "--table", journal)
        self.assertEqual([json.loads(done.stdout)[key] for key in ("nodes", "ranks")], [4, 4])
        self.assertEqual(done.stderr, "")
        done = run("ask", "--json", "--table", journal, "--ranks", "8")
        self.assertEqual([json.loads(done.stdout)[key] for key in ("nodes", "ranks")], [4, 8])
        self.assertIn("has tables for 4 nodes and 4 ranks; the questions are for 4 nodes and 8 ranks", done.stderr)

    def test_what_all_ranks_would_say_is_said_once(self) -> None:
        done = run("bench", "-g", "2", status=1, env={**os.environ, "DIAPASON_BACKEND": "foo"})
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)

    def test_variables_are_read_from_text(self) -> None:
        with tempfile.TemporaryDirectory(prefix="diapason-voice-") as folder:
            file = Path(folder) / "job.sh"
            for content in (bytes(range(256)) * 16, b"\0" * 4096, b"\x7fELF\x02\x01"):
                file.write_bytes(content)
                self.assertIn("is not a text file", run("env", "check", "--file", str(file), status=1).stderr)
            for content in (b"export NCCL_DEBUG=WARN\r\n\techo \x1b[1m\n", b"NCCL_DEBUG=WARN\0HOME=/root\0"):
                file.write_bytes(content)
                self.assertIn("1 variable from", run("env", "check", "--file", str(file), status=None).stdout)

    def test_json_whatever_happens(self) -> None:
        for words, status in [(["data", "show", "/nonexistent", "--json"], 1), (["policy", "show", "--json", "/nonexistent"], 2),
                              (["logs", "--json", "/nonexistent"], 1), (["env", "plan", "--goal", "speed", "--json"], None),
                              (["predict", "--json"], 2), (["journal", "check", "--json", "/nonexistent"], 1),
                              (["bench", "--json", "--backend", "sim", "-g", "2", "--cluster", "none"], 2),
                              (["bench", "--json", "--backend", "sim", "-g", "2", "--cluster", "./none.toml"], 1),
                              (["doctor", "--json", "--root", "/nonexistent"], 1)]:
            with self.subTest(" ".join(words)):
                done = run(*words, status=status)
                self.assertNotEqual(done.returncode, 0)
                self.assertIn("error", json.loads(done.stdout))
                self.assertTrue(done.stderr.startswith("diapason: error: "), done.stderr)

    def test_json_of_ranks_that_do_not_start(self) -> None:
        done = run("bench", "--backend", "nccl", "--json", "-g", "16", "--sizes", "1K", "--rounds", "1", status=None)
        if done.returncode == 0:
            self.skipTest("16 ranks of NCCL can run here")
        self.assertTrue(json.loads(done.stdout)["error"])
        self.assertNotIn("SIGTERM", done.stderr)

    def test_json_of_a_plan(self) -> None:
        done = run("sweep", "--dry-run", "--json", "--backend", "sim", "-g", "4", "--sizes", "1K:4K")
        [plan] = json.loads(done.stdout)
        self.assertEqual([plan[key] for key in ("dry_run", "simulated", "ranks")], [True, True, 4])
        self.assertEqual(plan["collectives"][0]["bytes"], [1024, 2048, 4096])

    def test_times_with_and_without_unit(self) -> None:
        for limit in ("2", "2s", "2000ms", "0.1m"):
            run("bench", "--backend", "sim", "-g", "2", "--sizes", "1K", "--rounds", "1", "--limit", limit)

    def test_no_colours_in_a_pipe(self) -> None:
        for words in (["doctor", "--no-test"], ["env", "check"], ["--help"]):
            self.assertNotIn("\033", run(*words, status=None).stdout)

    def test_exit_statuses_are_documented(self) -> None:
        page = (Path(__file__).resolve().parents[2] / "docs" / "formats" / "exit-status.md").read_text()
        for path, text in self.each():
            if "\nExit status:\n" not in text.text or not path:
                continue
            self.assertIn(f"`{' '.join(path)}`", page)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--tool", required=True)
    known, rest = parser.parse_known_args()
    TOOL = str(Path(known.tool).resolve())
    unittest.main(argv=[sys.argv[0], *rest])
