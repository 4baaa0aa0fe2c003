#include "doctor/checklist.h"

#include <algorithm>

#include "base/text.h"
#include "comm/backend_facts.h"
#include "doctor/checks.h"

namespace diapason::doctor {
namespace {

using State = ChecklistItem::State;

ChecklistItem Item(const char* id, const char* text, State state, std::string because) {
  return {id, text, state, std::move(because)};
}

ChecklistItem LibraryItem(const CheckInputs& facts) {
  const char* text = "NCCL 2.18 or RCCL 2.18 or later is installed";
  const host::LibraryFile* file = facts.Loaded();
  if (file == nullptr) {
    return Item("library", text, facts.machine.gpus.empty() ? State::kNotApplicable : State::kNotOk,
                facts.machine.gpus.empty() ? "no GPU, and none is found" : "none is found");
  }
  const std::string name = std::string(LibraryTitle(file->library)) + " " + VersionOf(*file);
  if (file->version == 0) return Item("library", text, State::kCannotTell, name);
  return Item("library", text, file->version >= 21800 ? State::kOk : State::kNotOk,
              name + ", " + file->path);
}

ChecklistItem TorchItem(const CheckInputs& facts) {
  const char* text = "PyTorch is built with NCCL or RCCL";
  if (facts.torch.empty()) {
    return Item("torch", text, State::kNotApplicable, "no PyTorch in reach");
  }
  for (const host::Torch& torch : facts.torch) {
    if (torch.with_nccl) return Item("torch", text, State::kOk, "PyTorch " + torch.version);
  }
  return Item("torch", text, facts.machine.gpus.empty() ? State::kNotApplicable : State::kNotOk,
              "PyTorch " + facts.torch[0].version + " has neither");
}

ChecklistItem NetworkItem(const CheckInputs& facts) {
  const char* text = "the network for collectives is identified";
  std::vector<std::string> active;
  for (const host::RdmaPort& port : facts.machine.rdma) {
    if (port.state == "ACTIVE") active.push_back(port.device);
  }
  if (!active.empty() && facts.system.rdma_files) {
    return Item("network", text, State::kOk,
                Count(active.size(), "active RDMA port") + ", " + active[0] + " first");
  }
  const std::string chosen = facts.Variable("NCCL_SOCKET_IFNAME");
  if (!chosen.empty()) {
    return Item("network", text, State::kOk, "NCCL_SOCKET_IFNAME=" + chosen);
  }
  std::vector<std::string> real;
  for (const host::NetInterface& interface : facts.machine.interfaces) {
    if (interface.up && !interface.virtual_one) real.push_back(interface.name);
  }
  if (real.size() == 1) return Item("network", text, State::kOk, "only " + real[0] + " is up");
  if (real.empty()) {
    return Item("network", text, State::kCannotTell, "no interface of hardware is up");
  }
  return Item("network", text, State::kNotOk,
              Join(real, ", ") + " are up, and NCCL_SOCKET_IFNAME is not set");
}

ChecklistItem LinkItem(const CheckInputs& facts) {
  const char* text = "NVLink or XGMI is enabled and up";
  const std::vector<host::Gpu>& gpus = facts.machine.gpus;
  if (gpus.size() < 2) {
    return Item("links", text, State::kNotApplicable, Count(gpus.size(), "GPU"));
  }
  int least = gpus[0].fabric_links;
  int down = 0;
  for (const host::Gpu& gpu : gpus) {
    least = std::min(least, gpu.fabric_links);
    down += gpu.fabric_links_down;
  }
  const std::string disabled = facts.Variable("NCCL_P2P_DISABLE");
  if (!disabled.empty() && disabled != "0") {
    return Item("links", text, State::kNotOk, "NCCL_P2P_DISABLE=" + disabled);
  }
  if (least == 0 && !facts.live && !facts.amd()) {
    return Item("links", text, State::kCannotTell, "files do not tell; only the driver does");
  }
  if (least == 0 && down == 0) {
    return Item("links", text, State::kNotApplicable, "these GPUs have none");
  }
  return Item("links", text, least > 0 && down == 0 ? State::kOk : State::kNotOk,
              Format("{} up on every GPU, {} down in all", least, down));
}

// It is an argument of init_process_group; no library variable sets it. Variables can only disable
// it.
ChecklistItem TimeOutItem(const CheckInputs& facts) {
  const char* text = "a time-out is set for collectives";
  for (const char* name : {"TORCH_NCCL_ASYNC_ERROR_HANDLING", "NCCL_ASYNC_ERROR_HANDLING"}) {
    if (facts.Variable(name) == "0") {
      return Item("time-out", text, State::kNotOk,
                  std::string(name) + "=0: a time-out does not end the job");
    }
  }
  return Item("time-out", text, State::kCannotTell,
              "it is init_process_group's argument `timeout`; no variable tells");
}

ChecklistItem LoggingItem(const CheckInputs& facts) {
  const std::string level = ToLower(facts.Variable("NCCL_DEBUG"));
  const bool on = level == "warn" || level == "info" || level == "trace";
  return Item(
      "logging", "warnings are logged (NCCL_DEBUG=WARN)", on ? State::kOk : State::kNotOk,
      level.empty() ? "NCCL_DEBUG is not set" : "NCCL_DEBUG=" + facts.Variable("NCCL_DEBUG"));
}

ChecklistItem AlgorithmItem(const CheckInputs& facts) {
  const char* text = "the algorithm is left to the library or a tuner";
  for (const char* name : {"NCCL_ALGO", "NCCL_PROTO", "RCCL_OVERRIDE_ALGO"}) {
    const std::string value = facts.Variable(name);
    if (!value.empty()) {
      return Item("algorithm", text, State::kNotOk,
                  std::string(name) + "=" + value + " forces one for every size");
    }
  }
  const std::string tuner = facts.Variable("NCCL_TUNER_PLUGIN");
  return Item("algorithm", text, State::kOk,
              tuner.empty() ? "no variable forces one" : "NCCL_TUNER_PLUGIN=" + tuner);
}

ChecklistItem GoalItem(const CheckInputs& facts, const char* id, const char* text,
                       const char* goal) {
  const TestResult& test = facts.test;
  if (facts.machine.gpus.size() < 2) {
    return Item(id, text, State::kNotApplicable, Count(facts.machine.gpus.size(), "GPU"));
  }
  if (!test.wanted) return Item(id, text, State::kCannotTell, "the test was not run");
  if (!test.trouble.empty()) return Item(id, text, State::kCannotTell, "the test failed");
  for (const GoalResult& one : test.goals) {
    if (one.name != goal) continue;
    if (one.verdict == "met") return Item(id, text, State::kOk, one.value);
    if (one.verdict == "MISSED") return Item(id, text, State::kNotOk, one.value);
    return Item(id, text, State::kCannotTell, one.verdict);
  }
  return Item(id, text, State::kCannotTell, "the test did not measure it");
}

ChecklistItem MeasuredItem(const CheckInputs& facts) {
  const char* text = "the time of an all-reduce is measured";
  const TestResult& test = facts.test;
  if (!facts.live) return Item("measured", text, State::kCannotTell, "another machine's files");
  if (!test.wanted) return Item("measured", text, State::kCannotTell, "run with --test");
  if (!test.trouble.empty()) return Item("measured", text, State::kNotOk, test.trouble);
  if (test.on_gpus) {
    return Item("measured", text, State::kOk, Count(test.goals.size(), "goal") + " looked at");
  }
  return Item("measured", text, State::kOk,
              Format("on CPUs: {:.0f} us for {}", test.fallback_us, test.fallback_what));
}

ChecklistItem FallbackItem(const CheckInputs& facts) {
  const char* text = "a fallback without GPUs works (Gloo)";
  if (!facts.live) return Item("fallback", text, State::kCannotTell, "another machine's files");
  const auto& usable = facts.usable_backends;
  const bool gloo =
      std::find(usable.begin(), usable.end(), comm::BackendOf(Library::kGloo)) != usable.end();
  return Item("fallback", text, gloo ? State::kOk : State::kNotOk,
              gloo ? "diapason backends: gloo is usable" : "diapason backends: gloo is not usable");
}

ChecklistItem LinkUsedItem(const CheckInputs& facts) {
  const char* text = "NVLink or XGMI is used between all GPUs";
  const std::vector<host::GpuPair>& pairs = facts.machine.pairs;
  if (facts.machine.gpus.size() < 2 || pairs.empty()) {
    return Item("links-used", text, State::kNotApplicable, Count(facts.machine.gpus.size(), "GPU"));
  }
  size_t linked = 0;
  for (const host::GpuPair& pair : pairs) {
    if (pair.path.starts_with("NV") || pair.path == "XGMI") ++linked;
  }
  if (linked == 0) {
    const bool blind = !facts.live && !facts.amd();
    return Item("links-used", text, blind ? State::kCannotTell : State::kNotApplicable,
                blind ? "files do not tell; only the driver does" : "no pair has such a link");
  }
  return Item("links-used", text, linked == pairs.size() ? State::kOk : State::kNotOk,
              Format("{} of {} pairs have one", linked, pairs.size()));
}

}  // namespace

std::string_view StateName(ChecklistItem::State state) {
  switch (state) {
    case State::kOk:
      return "ok";
    case State::kNotOk:
      return "not ok";
    case State::kCannotTell:
      return "cannot tell";
    case State::kNotApplicable:
      return "not applicable";
  }
  return "?";
}

std::vector<ChecklistItem> MakeChecklist(const CheckInputs& facts) {
  return {
      LibraryItem(facts),
      TorchItem(facts),
      NetworkItem(facts),
      LinkItem(facts),
      TimeOutItem(facts),
      LoggingItem(facts),
      AlgorithmItem(facts),
      MeasuredItem(facts),
      FallbackItem(facts),
      GoalItem(facts, "goal-latency", "all-reduce of 10 MB takes less than 1 ms", "gradients"),
      GoalItem(facts, "goal-bandwidth", "a ring reaches over 90 % of the link",
               "share of the link on ring"),
      GoalItem(facts, "goal-scaling", "four GPUs keep over 95 % of two GPUs' bus bandwidth",
               "scaling to four GPUs"),
      LinkUsedItem(facts),
  };
}

}  // namespace diapason::doctor
