#include <algorithm>
#include <map>

#include "base/text.h"
#include "doctor/checks.h"

namespace diapason::doctor {
namespace {

struct XidMeaning {
  int number;
  Severity severity;
  const char* what;
  const char* action;
};

constexpr const char* kOfProgram = "look for the fault in the program that ran then";
constexpr const char* kReset = "reset the GPU or restart the host; replace it if this comes again";

// The numbers that NVIDIA documents, as far as they occur with collectives.
constexpr XidMeaning kXids[] = {
    {13, Severity::kNote, "a kernel accessed memory wrongly or was invalid", kOfProgram},
    {31, Severity::kNote, "a program accessed GPU memory that is not mapped", kOfProgram},
    {43, Severity::kNote, "a program's work was stopped after a fault of its own", kOfProgram},
    {45, Severity::kNote, "a program's work was removed, as after another fault or a kill",
     "look at the messages before it"},
    {48, Severity::kError, "memory has an error that cannot be corrected (two bits)", kReset},
    {61, Severity::kWarning, "the GPU's microcontroller stopped", kReset},
    {62, Severity::kWarning, "the GPU's microcontroller stopped", kReset},
    {63, Severity::kWarning, "a row of memory is to be replaced at the next reset",
     "reset the GPU when no job runs"},
    {64, Severity::kError, "a row of memory could not be replaced", "replace the GPU"},
    {74, Severity::kError, "an NVLink has failed",
     "look at nvidia-smi nvlink -e; restart the host; replace the GPU or its board"},
    {79, Severity::kError, "the GPU has fallen off the bus",
     "restart the host; look at power, temperature and the slot"},
    {92, Severity::kWarning, "many errors of single bits were corrected", "watch it"},
    {94, Severity::kWarning, "an error of memory was contained: one program had to end",
     "restart that program, and reset the GPU when no job runs"},
    {95, Severity::kError, "an error of memory was not contained", kReset},
    {109, Severity::kWarning, "a change of context took too long", kOfProgram},
    {119, Severity::kError, "the GPU's system processor (GSP) does not answer", kReset},
    {120, Severity::kError, "the GPU's system processor (GSP) failed", kReset},
    {137, Severity::kNote, "an access over NVLink was not allowed", kOfProgram},
    {140, Severity::kError, "memory has errors that cannot be corrected", kReset},
    {154, Severity::kWarning, "the driver asks for a reset or a restart", kReset}};

void AddXid(int number, const std::vector<const host::KernelEvent*>& events,
            const std::string& source, std::vector<Finding>* findings) {
  const auto* found =
      std::find_if(std::begin(kXids), std::end(kXids),
                   [number](const XidMeaning& one) { return one.number == number; });
  const bool known = found != std::end(kXids);
  const std::string times = events.size() == 1 ? "" : Format(", {} times", events.size());
  AddFinding(findings, "kernel.xid", known ? found->severity : Severity::kWarning,
             Format("the kernel log has Xid {} of GPU {}{}", number, events.back()->device, times) +
                 (known ? std::string(": ") + found->what : ""),
             {source + ": " + events.back()->line},
             known ? found->action : "look it up in NVIDIA's list of Xid errors");
}

}  // namespace

void CheckKernelLog(const CheckInputs& facts, std::vector<Finding>* findings) {
  if (facts.machine.gpus.empty() && facts.machine.gpus_on_bus == 0) return;
  const host::KernelLog& log = facts.kernel_log;
  if (log.source.empty()) {
    if (facts.live) {
      AddFinding(findings, "kernel.log", Severity::kNote,
                 "the kernel log may not be read here: faults of GPUs in it are not known",
                 {"/dev/kmsg, /var/log/kern.log, /var/log/messages, /var/log/syslog: not readable"},
                 "run dmesg as root and look for Xid or amdgpu");
    }
    return;
  }
  std::map<std::pair<int, std::string>, std::vector<const host::KernelEvent*>> groups;
  for (const host::KernelEvent& event : log.events) {
    groups[{event.xid, event.device}].push_back(&event);
  }
  for (const auto& [key, events] : groups) {
    if (key.first > 0) {
      AddXid(key.first, events, log.source, findings);
      continue;
    }
    AddFinding(findings, "kernel.amdgpu", Severity::kWarning,
               "the kernel log has " + Count(events.size(), "message") +
                   " of the AMD driver about a fault" +
                   (key.second.empty() ? "" : " of GPU " + key.second),
               {log.source + ": " + events.back()->line},
               "look at the messages around it; reset the GPU or restart the host");
  }
  if (groups.empty()) {
    AddFinding(findings, "kernel.log", Severity::kFine, "no fault of a GPU in the kernel log",
               {log.source});
  }
}

}  // namespace diapason::doctor
