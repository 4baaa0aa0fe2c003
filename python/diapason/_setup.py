"""init(), env() and cleanup(): the variables that put the plugin into a job."""

from __future__ import annotations

import logging
import os
import sys
import warnings
from dataclasses import dataclass, field
from typing import Any, Dict, List, Mapping

from . import _files, _found, _journals, _plugin, _tool
from ._found import Setup
from ._settings import BOUNDS, PREFIX, checked, suggestion
from ._types import Arms, Library, Mode, Numerics, PathLike, Reward, Strategy

# Settings that name files: the program may change its folder before the plugin reads them.
_FILES = ("POLICY", "POLICY_OVERLAP", "LEARNED", "JOURNAL", "REWARD_FILE")
_TUNER, _PROFILER = "NCCL_TUNER_PLUGIN", "NCCL_PROFILER_PLUGIN"
_DOING = {"learn": "learning", "compare": "comparing", "tune": "tuning"}  # modes in which ranks agree call by call


@dataclass
class _Plan:
    plugin: str | None = None
    environment: Dict[str, str] = field(default_factory=dict)
    notes: List[str] = field(default_factory=list)
    warnings: List[str] = field(default_factory=list)
    digest: str | None = None


_log = logging.getLogger("diapason")
_setup: Setup | None = None
block: Setup | None = None  # what tuned() has set, while the program is inside


class _NotFound(RuntimeError):
    """The plugin is nowhere."""


def _plugin_file(plugin: PathLike | None, required: bool, plan: _Plan) -> str | None:
    try:
        return _usable(plugin)
    except (_NotFound, ValueError) as error:
        if not required:
            plan.warnings.append(f"{error}; the library decides alone")
            return None
        if isinstance(error, _NotFound):
            raise RuntimeError(f"{error}. Install the wheel or the Debian package diapason, or pass plugin=, or set "
                               "DIAPASON_LIB_DIR") from None
        raise


def _usable(plugin: PathLike | None) -> str:
    if plugin is not None:
        path = os.path.abspath(os.fspath(plugin))
        if not os.path.isfile(path):
            raise ValueError(f"there is no plugin file {path}")
    else:
        found = _files.find_plugin()
        if found is None:
            raise _NotFound(f"the plugin {_files.PLUGIN} was not found; looked in " + ", ".join(_files.searched()))
        path = found
    if not _files.is_elf(path):
        raise ValueError(f"{path} is no shared library")
    if not _files.has_plugin_symbols(path):
        raise ValueError(f"{path} is not diapason's plugin")
    if len(os.fsencode(path)) > _files.LONGEST_PATH:
        raise ValueError(f"the plugin's path is longer than the {_files.LONGEST_PATH} characters NCCL reads: {path}")
    return path


def _load_by(plan: _Plan, base: Mapping[str, str], chain: PathLike | bool | None, mode: str, check: bool) -> None:
    """The variables that make the library load the plugin, beside what others have set there."""
    path = plan.plugin or ""
    tuner, profiler = base.get(_TUNER, ""), base.get(_PROFILER, "")
    if chain is None and tuner and not _files.is_plugin_name(tuner):
        # What the library would have loaded. Where it was not named, the plugin finds it by the library's rules.
        if tuner.lower() != "none":
            chain = tuner
            plan.notes.append(f"{_TUNER} was {tuner}: it is asked first, and what it answers is the default (DIAPASON_CHAIN)")
        elif not base.get(PREFIX + "CHAIN"):
            chain = "none"
            plan.notes.append(f"{_TUNER} was {tuner}: no other tuner is asked (DIAPASON_CHAIN)")
    elif chain is False:
        chain = "none"
    elif chain is True:
        raise ValueError("chain= takes the other tuner's file or name, None or False")
    elif chain and check:
        name = checked("chain", chain)
        if os.sep in name and not os.path.isfile(name):  # another name is the loader's to find
            raise ValueError(f"chain: there is no file {name}")
    if chain:
        plan.environment[PREFIX + "CHAIN"] = checked("chain", chain)
    plan.environment[_TUNER] = path
    if profiler.lower() == "none":
        if mode in _DOING:
            raise ValueError(f"{_DOING[mode]} needs the profiler half of the plugin, and {_PROFILER}=none keeps it out; unset it, or "
                             "use mode='static'")
        plan.notes.append(f"{_PROFILER}=none stays: a journal will have decisions, and not what ran")
        return
    if profiler and not _files.is_plugin_name(profiler) and not base.get(PREFIX + "PROFILER_CHAIN"):
        plan.environment[PREFIX + "PROFILER_CHAIN"] = checked("profiler_chain", profiler)
        plan.notes.append(f"{_PROFILER} was {profiler}: the plugin loads it too, and passes on what it asks for "
                          "(DIAPASON_PROFILER_CHAIN)")
    plan.environment[_PROFILER] = path


def _settings_of(given: Mapping[str, Any]) -> Dict[str, str]:
    found = {}
    for name, value in given.items():
        if value is None:
            continue
        upper = name.upper()
        if upper not in BOUNDS or name != name.lower():
            raise ValueError(f"there is no setting '{name}'{suggestion(name, [one.lower() for one in BOUNDS])}")
        text = checked(name, value)
        found[PREFIX + upper] = os.path.abspath(os.path.expanduser(text)) if upper in _FILES else text
    return found


def _check_environment(merged: Mapping[str, str], plan: _Plan) -> None:
    """What is already set, and would make the plugin step aside or do nothing."""
    for name, value in merged.items():
        # `diapason tune` numbers its launches by DIAPASON_LAUNCH, for scripts.
        if not name.startswith(PREFIX) or not value or name == PREFIX + "LAUNCH":
            continue
        if name[len(PREFIX):] not in BOUNDS:
            plan.warnings.append(f"{name} is no setting{suggestion(name, [PREFIX + one for one in BOUNDS])}"
                                 if len(name) < 64 else f"{name[:64]}... is no setting")
            continue
        try:
            checked(name[len(PREFIX):], value)
        except ValueError as error:
            raise ValueError(f"{PREFIX}{error}") from None
    for name in ("NCCL_ALGO", "NCCL_PROTO"):
        if merged.get(name):
            plan.notes.append(f"{name}={merged[name]} is set: the library offers nothing else, so there is less to choose")


def _check_files(merged: Mapping[str, str], plan: _Plan, check: bool) -> None:
    policy, inline = merged.get(PREFIX + "POLICY"), merged.get(PREFIX + "POLICY_INLINE")
    learned, mode = merged.get(PREFIX + "LEARNED"), _mode_of(merged)
    first = merged.get("RANK", "0") == "0"
    used = policy if policy and not inline else None
    if learned and not (policy or inline) and os.path.exists(learned):
        used = learned  # the job starts from it
    if used and check:
        found = _tool.check_policy(used, merged.get(PREFIX + "LIBRARY"))
        if found.errors:
            more = f" (and {len(found.errors) - 1} more)" if len(found.errors) > 1 else ""
            raise ValueError(found.errors[0] + more)
        plan.digest = found.digest
        plan.notes += found.warnings
        if found.digest is None:
            plan.notes.append("the policy was not read strictly: there is no command-line tool that runs here")
    for what, name in (("learned", learned), ("journal", merged.get(PREFIX + "JOURNAL"))):
        folder = os.path.dirname(os.path.abspath(name)) if name else ""
        if check and folder and (first or what == "journal") and not os.access(folder, os.W_OK):
            raise ValueError(f"{what}: {name} cannot be written: {folder} is {'read-only' if os.path.isdir(folder) else 'no folder'}")
    if mode == "static" and not (policy or inline or learned or merged.get("NCCL_TUNER_CONFIG_FILE")):
        plan.notes.append("no policy: the library decides as it always did (mode='learn' would learn one)")
    hosts = merged.get("LOCAL_WORLD_SIZE", "") != merged.get("WORLD_SIZE", "") and merged.get("LOCAL_WORLD_SIZE")
    if mode in _DOING and not merged.get(PREFIX + "STORE") and (hosts or merged.get("SLURM_NNODES", "1") not in ("", "1")):
        plan.warnings.append("the ranks are on several hosts and have no place to agree: nothing will be "
                             f"{'learned' if mode == 'learn' else 'compared'}. Set store='file:/shared/folder' or store='redis://host'")
    if mode == "compare" and not (policy or inline or merged.get("NCCL_TUNER_CONFIG_FILE")):
        plan.warnings.append("mode='compare' runs the default and a policy in turns, and there is no policy; pass policy=")


def _mode_of(environment: Mapping[str, str]) -> str:
    return environment.get(PREFIX + "MODE", "").strip().lower() or "static"


def _plan(base: Mapping[str, str], plugin: PathLike | None = None, inline: bool = False, chain: PathLike | bool | None = None,
          check: bool = True, required: bool = True, **settings: Any) -> _Plan:
    plan = _Plan()
    policy = settings.get("policy")
    own = _settings_of(settings)
    if policy is not None and inline:
        found = _tool.check_policy(own[PREFIX + "POLICY"], own.get(PREFIX + "LIBRARY"))
        if found.errors:
            raise ValueError(found.errors[0])
        plan.digest = found.digest
        own[PREFIX + "POLICY_INLINE"] = _tool.inline_policy(own.pop(PREFIX + "POLICY"))
    elif inline:
        raise ValueError("inline=True needs a policy")
    elif policy is not None and base.get(PREFIX + "POLICY_INLINE"):
        own[PREFIX + "POLICY_INLINE"] = ""  # it would win over the file; empty is not set
        plan.notes.append("DIAPASON_POLICY_INLINE was set and is emptied: the policy that was passed counts")
    merged = {**base, **own}
    plan.plugin = _plugin_file(plugin, required, plan)
    if plan.plugin is None:
        return plan
    _load_by(plan, base, chain, _mode_of(merged), check)
    plan.environment.update(own)
    merged = {**base, **plan.environment}
    _check_environment(merged, plan)
    _check_files(merged, plan, check)
    return plan


def env(policy: PathLike | None = None, mode: Mode | None = None, learned: PathLike | None = None,
        journal: PathLike | None = None, *, plugin: PathLike | None = None, inline: bool = False,
        chain: PathLike | bool | None = None, check: bool = True, required: bool = True,
        library: Library | None = None, numerics: Numerics | None = None, reward: Reward | None = None,
        strategy: Strategy | None = None, arms: Arms | None = None,
        base: Mapping[str, str] | None = None, **settings: Any) -> Dict[str, str]:
    """The variables that init() would set, as a dict, and nothing is touched: for launchers.

        subprocess.run(["torchrun", ...], env={**os.environ, **diapason.env(mode="learn")})
        ray.init(runtime_env={"env_vars": diapason.env(policy="my.conf", inline=True)})

    Takes what init() takes, and `base`, the environment they will be added to (this process's, unless
    given): what is set there is checked too. With required=False and no plugin the dict is empty. The
    plugin's path is this machine's; where it differs on the others pass plugin=, or let every rank call
    init(). `inline=True` sends the policy itself, so that all hosts use the same one without sharing a
    file system.
    """
    around = os.environ if base is None else base
    plan = _plan(around, plugin, inline, chain, check, required, policy=policy, mode=mode, learned=learned, journal=journal,
                 library=library, numerics=numerics, reward=reward, strategy=strategy, arms=arms, **settings)
    for text in plan.warnings:
        warnings.warn(f"diapason: {text}", RuntimeWarning, stacklevel=2)
    if plan.plugin is not None:
        _journals.remember({**around, **plan.environment}.get(PREFIX + "JOURNAL"))
    return dict(plan.environment)


def _nccl_groups() -> bool:
    """Whether torch.distributed, where it is imported, has a process group on NCCL."""
    dist = sys.modules.get("torch.distributed")
    try:
        if dist is None or not dist.is_available() or not dist.is_initialized():
            return False
        groups = list(dist.distributed_c10d._world.pg_map) or [None]
        # "undefined": by device, and NCCL is the one of GPUs.
        return any(word in str(dist.get_backend(one)) for one in groups for word in ("nccl", "undefined"))
    except Exception:  # other versions of torch: what cannot be found out is no reason to refuse
        return False


def _too_late(plan: _Plan, caller: str) -> str | None:
    """Why NCCL would not read the variables any more; None where it will."""
    if _plugin.available():
        if caller == "init":
            return "the plugin is already in this process"
        loaded = _plugin.loaded_path() or ""  # it reads its settings for each communicator
        if plan.plugin is not None and os.path.realpath(loaded) == os.path.realpath(plan.plugin):
            return None
        return f"the plugin {loaded} is already in this process, and not {plan.plugin}"
    if _nccl_groups():
        return "torch.distributed already has a process group on NCCL"
    return None


def apply(caller: str, arguments: Mapping[str, Any]) -> Setup:
    """What init() and tuned() do."""
    global _setup
    base = dict(os.environ)
    if _setup is not None:
        _undo(_setup, base)
    plan = _plan(base, **arguments)
    late = _too_late(plan, caller) if {**base, **plan.environment} != dict(os.environ) else None
    if late is not None:
        raise RuntimeError(f"diapason.{caller}() comes too late: {late}, and NCCL reads its variables when the first communicator "
                           "is created. Call it before init_process_group(), or start the program with the variables of "
                           "diapason.env()")
    for text in plan.warnings:
        warnings.warn(f"diapason: {text}", RuntimeWarning, stacklevel=3)
    before = {name: base.get(name) for name in plan.environment}
    setup = _found.found(plan.plugin, dict(plan.environment), before, plan.notes + plan.warnings, plan.digest,
                         {**base, **plan.environment})
    cleanup()
    os.environ.update(plan.environment)
    _setup = setup
    if plan.plugin is not None:
        _journals.remember(os.environ.get(PREFIX + "JOURNAL"))
    _log.info("diapason: %s", setup.line())
    return setup


def take_back(setup: Setup | None) -> None:
    """The end of a tuned() block: the environment is as before, and this is what it holds."""
    global _setup
    _setup = setup


def init(policy: PathLike | None = None, mode: Mode | None = None, learned: PathLike | None = None,
         journal: PathLike | None = None, *, plugin: PathLike | None = None, inline: bool = False,
         chain: PathLike | bool | None = None, check: bool = True, required: bool = True,
         library: Library | None = None, numerics: Numerics | None = None, reward: Reward | None = None,
         strategy: Strategy | None = None, arms: Arms | None = None, **settings: Any) -> Setup:
    """Puts the plugin into this process's environment. Call it before the process group is created.

        diapason.init(policy="my.conf")                           # apply a policy
        diapason.init(mode="learn", learned="learned.conf")       # learn, and start from what is known

    policy    policy file; it is read strictly, and one mistake refuses it whole
    mode      "static" (the default: apply the policy), "learn", "compare" (the default and the policy
              take turns), "observe" or "off"
    learned   policy file that rank 0 writes what was learned to; the next job starts from it
    journal   write every decision here; %h becomes the host and %p the process id
    plugin    the plugin's file, if not the one library_path() finds
    inline    send the policy itself in a variable (child processes inherit it)
    chain     another tuner to ask first; None: the one the library would have loaded, False: none
    check     False: do not read the policy and do not look at folders and other tuners
    required  False: where no plugin can be used, warn and go on without it
    settings  every other setting by its name in lower case: store=, job=, numerics="pinned",
              reward="step", overlap=True, margin=0.05 ... `diapason settings` lists them

    What is not passed stays as the environment has it. A value that the plugin would refuse is a
    ValueError; a missing plugin, or a call that comes too late, a RuntimeError: NCCL reads the variables once,
    when its first communicator is created. (If everything is set already as asked, because the launcher
    did, no call is too late.) A second call replaces what the first one has set.

    The result names what was found: plugin, library, mode, policy, chained tuner and profiler. The same
    line goes to the logger "diapason", at level INFO.
    """
    if block is not None:
        raise RuntimeError("diapason.init() inside diapason.tuned(): the block has set the variables; leave it first")
    return apply("init", dict(
        policy=policy, mode=mode, learned=learned, journal=journal, plugin=plugin, inline=inline, chain=chain, check=check,
        required=required, library=library, numerics=numerics, reward=reward, strategy=strategy, arms=arms, **settings))


def _undo(setup: Setup, environment: Any) -> None:
    for name, value in setup.before.items():
        if environment.get(name) != setup.environment[name]:
            continue  # changed by other code since
        if value is None:
            del environment[name]
        else:
            environment[name] = value


def cleanup() -> None:
    """Takes back what init() has set. May be called any number of times.

    Variables that were changed since stay. A plugin that is already in the process stays there:
    it closes its journal and writes what it has learned when the communicators are destroyed
    (destroy_process_group()) and when the process ends.
    """
    global _setup
    if _setup is not None:
        _undo(_setup, os.environ)
        _setup = None


def current() -> Setup | None:
    """What init() has set and found; None before it and after cleanup()."""
    return _setup


def library_path() -> str | None:
    """The plugin file that init() and env() use where none is passed; None where there is none.

    Looked for in DIAPASON_LIB_DIR, where NCCL_TUNER_PLUGIN points (if at this plugin), beside this
    package or in the prefix it was installed to, in LD_LIBRARY_PATH and in the system's folders.
    """
    return _files.find_plugin()
