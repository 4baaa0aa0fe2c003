#!/usr/bin/env python3
"""How often `diapason logs` names the cause of a failing job: diagnosis.py FOLDER_OF_THE_PROGRAMS [-v] [--check] [FOLDER...]

Each FOLDER (tests/data/diagnosis/development unless told) holds one folder per case: the logs of a job and label.json with
  expect   regular expressions; a finding or verdict that matches one of them names the cause
  wrong    regular expressions; an error or warning that matches one of them is a wrong accusation
  healthy  true: the job is not broken, and no error may be reported
Cases without `expect` are printed for reading and not counted. -v prints every case. --check fails unless every
cause is named first, nothing is wrong and no healthy job has an error.

named: a finding (error or warning) or the verdict matches; first: the first finding or the verdict does; wrong: errors and
warnings that match `wrong`, and errors of healthy jobs; silent: exit status 0 on a broken job.
"""

import json
import re
import subprocess
import sys
from pathlib import Path


def cases(folders: list[Path]) -> list[Path]:
    return [label.parent for folder in folders for label in sorted(folder.glob("*/label.json"))]


def matches(patterns: list[str], text: str) -> bool:
    return any(re.search(pattern, text, re.IGNORECASE) for pattern in patterns)


def run(tool: Path, case: Path) -> tuple[int, dict]:
    files = sorted(file for file in case.iterdir() if file.name != "label.json" and file.is_file())
    done = subprocess.run([tool, "logs", "--json", *files], capture_output=True, text=True, timeout=60, check=False)
    if done.returncode not in (0, 3, 4):
        sys.exit(f"{case.name}: exit status {done.returncode}: {done.stderr}")
    return done.returncode, json.loads(done.stdout)


def judge(label: dict, status: int, report: dict) -> dict:
    serious = [finding for finding in report["findings"] if finding["severity"] in ("error", "warning")]
    titles = [finding["title"] for finding in serious]
    verdict = report["verdict"]["text"]
    errors = sum(finding["severity"] == "error" for finding in serious)
    healthy = label.get("healthy", False)
    expect = label.get("expect", [])
    wrong = sum(matches(label.get("wrong", []), title) for title in titles)
    if healthy:
        return {"healthy": True, "errors": errors, "wrong": max(wrong, errors), "serious": len(serious), "status": status}
    return {"healthy": False, "named": any(matches(expect, text) for text in [verdict, *titles]),
            "first": matches(expect, verdict) or bool(titles) and matches(expect, titles[0]), "wrong": wrong,
            "serious": len(serious), "status": status}


def main() -> int:
    arguments = [argument for argument in sys.argv[1:] if argument not in ("-v", "--check")]
    verbose = "-v" in sys.argv
    if not arguments:
        sys.exit(__doc__)
    tool = Path(arguments[0]).resolve() / "diapason"
    development = Path(__file__).resolve().parent.parent / "tests/data/diagnosis/development"
    misses = 0
    total = {"broken": 0, "named": 0, "first": 0, "silent": 0, "healthy": 0, "quiet": 0, "serious": 0, "wrong": 0}
    for case in cases([Path(name) for name in arguments[1:]] or [development]):
        label = json.loads((case / "label.json").read_text())
        status, report = run(tool, case)
        if not label.get("expect") and not label.get("healthy"):
            print(f"read  {case.name}: must say: {label.get('must_say', '?')}\n      {report['verdict']['text']}")
            continue
        result = judge(label, status, report)
        total["serious"] += result["serious"]
        total["wrong"] += result["wrong"]
        if result["healthy"]:
            total["healthy"] += 1
            total["quiet"] += result["errors"] == 0
            good = result["errors"] == 0 and result["wrong"] == 0
        else:
            total["broken"] += 1
            for count in ("named", "first"):
                total[count] += result[count]
            total["silent"] += status == 0
            good = result["first"] and result["wrong"] == 0 and status != 0
        misses += not good
        if verbose or not good:
            print(f"{'good ' if good else 'MISS '} {case.name}: " + ", ".join(f"{key} {value}" for key, value in result.items()))
            print(f"      cause: {label.get('cause', '?')}\n      {report['verdict']['text']}")
            for finding in report["findings"]:
                if finding["severity"] in ("error", "warning"):
                    print(f"      {finding['severity']}: [{finding['id']}] {finding['title']}")
    broken = max(total["broken"], 1)
    print(f"{total['broken']} broken jobs: cause named in {total['named']} ({100 * total['named'] / broken:.0f} %), first in "
          f"{total['first']} ({100 * total['first'] / broken:.0f} %), silent {total['silent']}; "
          f"{total['healthy']} healthy jobs: {total['quiet']} without an error; "
          f"{total['wrong']} of {total['serious']} errors and warnings wrong")
    if "--check" in sys.argv and (misses > 0 or total["broken"] == 0):
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
