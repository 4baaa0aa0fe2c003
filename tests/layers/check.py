#!/usr/bin/env python3
"""Compares cmake/components.cmake with the #include lines of src/.

check.py [ROOT]: prints one line for each violation; the exit status is 1 where there is any.
- An #include of a component that the list does not allow.
- An entry of the list that no #include needs. (Unit tests do not count.)
- A component that uses one which is listed after it: so the list has no cycles.
- A folder with more than 25 sources, or a folder of sources that belongs to no component.
- Headers that include each other, directly or not.
"""

import graphlib
import pathlib
import re
import sys

MOST_SOURCES = 25
ENTRY = re.compile(r"set\(DIAPASON_USES_(\w+)\s+([^)]*)\)")
INCLUDE = re.compile(r'^\s*#\s*include\s+"([a-z_]+(?:/[a-z_]+)*)/[^"/]+"', re.MULTILINE)
HEADER = re.compile(r'^\s*#\s*include\s+"([^"]+\.h)"', re.MULTILINE)
FOR_TESTS = re.compile(r"_test\.cc$|/(testing|fake_\w+|\w+_visitor)\.(cc|h)$")


def read_list(root):
    """{folder: [folders it uses]}, in the order of the file."""
    text = re.sub(r"#[^\n]*", "", (root / "cmake/components.cmake").read_text())
    names = {}
    for name, uses in ENTRY.findall(text):
        folder = name
        while not (root / "src" / folder).is_dir():
            if "_" not in folder:
                raise SystemExit(f"cmake/components.cmake: there is no folder for '{name}'")
            folder = folder.replace("_", "/", 1)
        names[folder] = uses.replace('"', "").split()
    return names


def component_of(folder, components):
    """The component that a folder below src/ belongs to; None where there is none."""
    while folder and folder not in components:
        folder = folder.rpartition("/")[0]
    return folder or None


def check_headers(root):
    source = root / "src"
    headers = {file.relative_to(source).as_posix(): file for file in source.rglob("*.h")}
    includes = {name: [other for other in HEADER.findall(file.read_text()) if other in headers]
                for name, file in headers.items()}
    try:
        graphlib.TopologicalSorter(includes).prepare()
    except graphlib.CycleError as error:
        return ["headers include each other: " + ", ".join(sorted(set(error.args[1])))]
    return []


def check(root):
    components = read_list(root)
    problems = []
    listed = set()
    for name, uses in components.items():
        problems += [f"{name} uses {other}, which is not listed before it" for other in uses if other not in listed]
        listed.add(name)
    used = {name: set() for name in components}
    reach = {}  # what a component uses, directly or not: its unit tests may as well
    for name, uses in components.items():
        reach[name] = set(uses).union(*(reach.get(other, set()) for other in uses))
    sources = {}
    for file in sorted((root / "src").rglob("*")):
        if file.suffix not in (".cc", ".h"):
            continue
        path = file.relative_to(root / "src").as_posix()
        folder = path.rpartition("/")[0]
        if file.suffix == ".cc" and not FOR_TESTS.search(path):
            sources[folder] = sources.get(folder, 0) + 1
        mine = component_of(folder, components)
        if mine is None:
            if path != "cli/main.cc":
                problems.append(f"src/{path} belongs to no component")
            continue
        for included in INCLUDE.findall(file.read_text()):
            other = component_of(included, components)
            if other in (None, mine):
                continue
            allowed = reach[mine] if FOR_TESTS.search("/" + path) else components[mine]
            if other not in allowed:
                problems.append(f"src/{path} includes a header of {other}, which {mine} may not use")
            if not FOR_TESTS.search("/" + path):
                used[mine].add(other)
    for name, uses in components.items():
        problems += [f"{name} does not need {other}" for other in uses if other not in used[name]]
    problems += [f"src/{folder} has {count} sources; at most {MOST_SOURCES}"
                 for folder, count in sources.items() if count > MOST_SOURCES]
    return problems + check_headers(root)


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    problems = check(root)
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
