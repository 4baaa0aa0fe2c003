#include "base/text.h"
#include "base/units.h"
#include "doctor/checks.h"

namespace diapason::doctor {
namespace {

constexpr uint64_t kMega = uint64_t{1} << 20;
constexpr uint64_t kGiga = uint64_t{1} << 30;

void CheckShm(const CheckInputs& facts, std::vector<Finding>* findings) {
  const host::System& system = facts.system;
  const bool matters = facts.machine.gpus.size() > 1;
  if (!system.shm_bytes) {
    if (matters) {
      AddFinding(findings, "shm.unknown", Severity::kNote, "the size of /dev/shm is not known",
                 {"/proc/self/mounts: no /dev/shm"});
    }
    return;
  }
  const std::string size = AboutBytes(*system.shm_bytes);
  const bool docker = *system.shm_bytes == 64 * kMega;
  if (*system.shm_bytes <= 64 * kMega) {
    AddFinding(
        findings, "shm.small", matters ? Severity::kWarning : Severity::kNote,
        "/dev/shm has " + size + (docker ? ", what containers get by default" : "") +
            ": NCCL fails when its ranks need more",
        {"/dev/shm: " + size},
        "docker run --ipc=host or --shm-size=8g; in Kubernetes an emptyDir of medium Memory");
    return;
  }
  if (*system.shm_bytes < kGiga && matters) {
    AddFinding(findings, "shm.small", Severity::kWarning,
               "/dev/shm has only " + size + " for " + Count(facts.machine.gpus.size(), "GPU"),
               {"/dev/shm: " + size}, "give it 1 GiB or more: mount -o remount,size=8g /dev/shm");
    return;
  }
  if (system.shm_free && *system.shm_free < *system.shm_bytes / 10) {
    AddFinding(findings, "shm.full", Severity::kWarning, "/dev/shm is nearly full",
               {"/dev/shm: " + AboutBytes(*system.shm_free) + " of " + size + " free"},
               "remove what jobs that ended have left there");
    return;
  }
  AddFinding(findings, "shm.size", Severity::kFine, "/dev/shm has " + size);
}

void CheckMemlock(const CheckInputs& facts, std::vector<Finding>* findings) {
  if (!facts.system.memlock) return;
  const std::string value = AboutLimit(*facts.system.memlock);
  const std::vector<std::string> evidence = {"/proc/self/limits: max locked memory " + value};
  if (*facts.system.memlock == host::kUnlimited) {
    AddFinding(findings, "limit.memlock", Severity::kFine, "locked memory is not limited");
    return;
  }
  if (facts.system.may_lock) {
    AddFinding(findings, "limit.memlock", Severity::kFine,
               "locked memory is limited, but this process may exceed it (CAP_IPC_LOCK)", evidence);
    return;
  }
  if (facts.machine.rdma.empty()) {
    AddFinding(findings, "limit.memlock", Severity::kFine,
               "locked memory is limited, which matters with RDMA only", evidence);
    return;
  }
  AddFinding(
      findings, "limit.memlock",
      *facts.system.memlock < kGiga && facts.system.rdma_files ? Severity::kError
                                                               : Severity::kWarning,
      "RDMA has to lock memory, and this process may lock " + value, evidence,
      "ulimit -l unlimited (limits.conf, LimitMEMLOCK=infinity, docker --ulimit memlock=-1)");
}

}  // namespace

void CheckLimits(const CheckInputs& facts, std::vector<Finding>* findings) {
  CheckShm(facts, findings);
  CheckMemlock(facts, findings);
  const host::System& system = facts.system;
  if (system.open_files) {
    const bool low = *system.open_files <= 1024 && !facts.machine.gpus.empty();
    AddFinding(findings, "limit.open-files", low ? Severity::kNote : Severity::kFine,
               low ? "few open files are allowed: jobs with many ranks need more"
                   : "enough open files are allowed",
               {"/proc/self/limits: max open files " + (*system.open_files == host::kUnlimited
                                                            ? "unlimited"
                                                            : std::to_string(*system.open_files))},
               low ? "ulimit -n 65536" : "");
  }
  if (system.processes && *system.processes < 4096) {
    AddFinding(findings, "limit.processes", Severity::kNote,
               "few processes and threads are allowed",
               {"/proc/self/limits: max processes " + std::to_string(*system.processes)},
               "ulimit -u 65536");
  }
  if (system.stack == host::kUnlimited) {
    AddFinding(findings, "limit.stack", Severity::kNote,
               "the stack is not limited, so that threads get 2 MiB instead of 8",
               {"/proc/self/limits: max stack size unlimited"}, "ulimit -s 8192");
  }
  const host::Machine& machine = facts.machine;
  if (machine.memory_limit > 0) {
    AddFinding(findings, "container.memory", Severity::kNote,
               "the control group allows " + AboutBytes(machine.memory_limit) + " of " +
                   AboutBytes(machine.memory_bytes) + " memory; pinned buffers count",
               {machine.memory_limit_file + ": " + std::to_string(machine.memory_limit)});
  }
  constexpr uint64_t kFewTasks = 1024;
  if (machine.tasks_limit > 0 && machine.tasks_limit < kFewTasks) {
    AddFinding(findings, "container.tasks", Severity::kNote,
               Format("the control group allows {} processes and threads; a rank with PyTorch has "
                      "about a hundred",
                      machine.tasks_limit),
               {machine.tasks_limit_file + ": " + std::to_string(machine.tasks_limit)},
               "docker run --pids-limit=-1; in Kubernetes the kubelet's podPidsLimit");
  }
  if (!machine.container.empty()) {
    AddFinding(findings, "container.kind", Severity::kFine, "in a container: " + machine.container);
  }
}

}  // namespace diapason::doctor
