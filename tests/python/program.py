"""A rank of a program that uses the installed package, on a library that is played. Prints JSON.

    python program.py '{"fake": ..., "rank": 0, "ranks": 2, "init": {...}, "calls": 300, "reward": "report"}'

It must not find the package in the source tree: run it with python -I.
"""

import json
import os
import sys
import time

request = json.loads(sys.argv[1])
sys.path.append(os.path.dirname(os.path.abspath(__file__)))

import diapason  # noqa: E402
import played_nccl  # noqa: E402

answer = {"file": diapason.__file__, "package": diapason.__version__, "before": diapason.available()}
for _ in range(3):
    diapason.step()  # nobody there yet
answer["report_before"] = diapason.report("allreduce", 4096, 1.0)
setup = diapason.init(**request["init"])
answer["set"] = dict(setup.environment)
answer["text"] = str(setup)
assert all(os.environ[name] == value for name, value in setup.environment.items())

library = played_nccl.Library(request["fake"])
communicator = played_nccl.Communicator(library, request["id"], request["rank"], request["ranks"])
answer["available"], answer["version"] = diapason.available(), diapason.version()
answer["loaded"] = diapason._plugin.loaded_path()
taken, ran = 0, {}
peer = request["meet"] + str(1 - request["rank"])
mine = request["meet"] + str(request["rank"])
for call in range(request["calls"]):
    choice = communicator.all_reduce(1 << 15)
    ran["%d/%d" % choice] = ran.get("%d/%d" % choice, 0) + 1
    # tree/simple takes half the time.
    if request["reward"] == "step":
        time.sleep(0.0002 if choice == (0, 2) else 0.0004)
        diapason.step()
    else:
        time.sleep(0.0005)  # who decides for all ranks needs time as well
        taken += diapason.report("allreduce", 1 << 15, 0.2 if choice == (0, 2) else 0.4)
    if call % 20 == 0:  # real calls would wait for each other
        with open(mine, "w") as file:
            file.write(str(call))
        for _ in range(300000):
            try:
                with open(peer) as file:
                    if int(file.read() or 0) >= call - 20:
                        break
            except (OSError, ValueError):
                pass
            time.sleep(0.001)
with open(mine, "w") as file:
    file.write(str(1 << 30))
answer["taken"], answer["ran"] = taken, ran
try:
    diapason.init(mode="off")
    answer["late"] = None
except RuntimeError as error:
    answer["late"] = str(error)
diapason.init(**request["init"])  # the same again is fine, however late
for bad in (("allreduse", 4096, 1.0), ("allreduce", 4096, -1.0), ("allreduce", -1, 1.0)):
    try:
        diapason.report(*bad)
        answer["refused"] = str(bad)
        break
    except ValueError:
        answer["refused"] = True
try:
    answer["verify"] = str(diapason.verify())
except RuntimeError as error:
    answer["verify"] = str(error)
diapason.cleanup()
diapason.cleanup()
answer["left"] = sorted(name for name in os.environ if name.startswith(("NCCL_", "DIAPASON_")))
communicator.destroy()
print(json.dumps(answer))
