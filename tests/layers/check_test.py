#!/usr/bin/env python3
"""The list of components is true, and check.py notices where it is not.

check_test.py ROOT
"""

import pathlib
import shutil
import sys
import tempfile

import check


def expect(root, change, problem):
    """Applies a change to a copy of the sources: exactly this problem must be reported."""
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder)
        for name in ("src", "cmake"):
            shutil.copytree(root / name, copy / name)
        change(copy)
        found = check.check(copy)
    assert found == [problem], f"expected {problem!r}, found {found}"


def append(path, text):
    return lambda root: (root / path).write_text((root / path).read_text() + text)


def replace(path, old, new):
    def change(root):
        text = (root / path).read_text()
        assert old in text, old
        (root / path).write_text(text.replace(old, new))
    return change


def many_sources(root):
    for i in range(check.MOST_SOURCES + 1):
        (root / f"src/cli/commands/many/source{i}.cc").parent.mkdir(exist_ok=True)
        (root / f"src/cli/commands/many/source{i}.cc").write_text("")


def main():
    root = pathlib.Path(sys.argv[1])
    found = check.check(root)
    assert not found, "\n".join(found)

    expect(root, append("src/base/text.cc", '#include "policy/policy.h"\n'),
           "src/base/text.cc includes a header of policy, which base may not use")
    expect(root, append("src/comm/backends/sim/cluster.cc", '#include "dataset/store.h"\n'),
           "src/comm/backends/sim/cluster.cc includes a header of dataset, which comm may not use")
    expect(root, append("src/plugin/profiler/observer.cc", '#include "plugin/tuner/engine.h"\n'),
           "src/plugin/profiler/observer.cc includes a header of plugin/tuner, which plugin/profiler may not use")
    expect(root, replace("cmake/components.cmake", "DIAPASON_USES_report ", "DIAPASON_USES_report learn "),
           "report does not need learn")
    expect(root, append("src/plugin/learning/handover.h", '#include "plugin/learning/learning.h"\n'),
           "headers include each other: plugin/learning/handover.h, plugin/learning/learning.h")
    expect(root, many_sources, "src/cli/commands/many has 26 sources; at most 25")
    print("the list of components is true")


if __name__ == "__main__":
    main()
