// Versions, plugins, choices, memory and the CPU.
#include <algorithm>
#include <map>

#include "base/text.h"
#include "base/units.h"
#include "domain/library_version.h"
#include "logs/cursor.h"
#include "logs/diagnose.h"

namespace diapason::logs {
namespace {

void Versions(const LogFacts& facts, std::vector<Finding>* findings) {
  std::vector<uint32_t> used(facts.libraries.size(), 0);
  std::vector<uint32_t> example(facts.libraries.size(), 0);
  for (size_t i = 0; i < facts.processes.size(); ++i) {
    const uint32_t library = facts.processes[i].library;
    if (library == kNoName) continue;
    if (used[library]++ == 0) example[library] = static_cast<uint32_t>(i);
  }
  // Ranks of one communicator with different versions; files of two jobs may differ.
  for (const LoggedComm& communicator : facts.communicators) {
    uint32_t first = kNoName;
    for (const uint32_t index : communicator.members) {
      const uint32_t library = facts.processes[facts.members[index].process].library;
      if (library == kNoName) continue;
      if (first == kNoName) first = library;
      if (library == first) continue;
      findings->push_back(
          {"version.mismatch",
           Severity::kError,
           Format("Ranks of one communicator run {} and {}", facts.libraries[first],
                  facts.libraries[library]),
           {facts.Where(facts.library_places[first]), facts.Where(facts.library_places[library])},
           "install one version everywhere; look at LD_LIBRARY_PATH and at the "
           "container image of each host"});
      return;
    }
  }
  for (uint32_t i = 0; i < facts.libraries.size(); ++i) {
    // "NCCL 2.29.2+cuda13.1" on a driver for CUDA 12.
    Cursor library(facts.libraries[i]);
    int64_t built = 0;
    if (!library.SkipTo("+cuda") || !library.Number(&built)) continue;
    for (uint32_t d = 0; d < facts.drivers.size(); ++d) {
      Cursor driver(facts.drivers[d]);
      int64_t known = 0;
      if (!driver.Skip("CUDA driver ") || !driver.Number(&known) || known >= built) continue;
      findings->push_back(
          {"version.driver",
           Severity::kError,
           Format("{} was built for CUDA {}, the driver knows CUDA {} only", facts.libraries[i],
                  built, known),
           {facts.Where(facts.library_places[i]), facts.Where(facts.driver_places[d])},
           "install a driver for that CUDA version, or a library built for the "
           "older one"});
      break;
    }
  }
  for (const PerfTest& test : facts.perf.tests) {
    if (test.headers == 0 || test.library == 0 || test.headers == test.library) continue;
    findings->push_back(
        {"version.headers",
         Severity::kWarning,
         Format("The tests were compiled with headers of {} and run with library {}",
                LibraryVersionText(LibraryVersionOfCode(static_cast<int>(test.headers))),
                LibraryVersionText(LibraryVersionOfCode(static_cast<int>(test.library)))),
         {facts.Where(test.start)},
         "compile them with the headers of the library that is loaded, or fix LD_LIBRARY_PATH"});
    break;
  }
}

void Plugins(const LogFacts& facts, std::vector<Finding>* findings) {
  static constexpr std::pair<std::string_view, std::string_view> kWanted[] = {
      {"net ", "NCCL_NET_PLUGIN"},
      {"tuner ", "NCCL_TUNER_PLUGIN"},
      {"profiler ", "NCCL_PROFILER_PLUGIN"},
      {"env ", "NCCL_ENV_PLUGIN"}};
  for (uint32_t i = 0; i < facts.missing_plugins.size(); ++i) {
    for (const auto& [part, name] : kWanted) {
      if (!facts.missing_plugins[i].starts_with(part)) continue;
      // The default name is tried by the library; this one was set by the user.
      const auto wanted = std::find_if(
          facts.variables.begin(), facts.variables.end(),
          [&, wanted_name = name](const Variable& v) { return v.name == wanted_name; });
      if (wanted == facts.variables.end() || wanted->values[0] == "none") continue;
      findings->push_back(
          {"plugin.missing",
           Severity::kError,
           Format("The plugin that {} asks for could not be loaded: {}", std::string(name),
                  facts.missing_plugins[i].substr(part.size())),
           {facts.Where(wanted->places[0]), facts.Where(facts.missing_plugin_places[i])},
           "give its whole path, or put its folder into LD_LIBRARY_PATH of every rank; ldd shows "
           "whether it misses a library itself"});
    }
  }
}

void Cpu(const LogFacts& facts, std::vector<Finding>* findings) {
  if (facts.no_affinity.count > 0) {
    findings->push_back({"cpu.affinity",
                         Severity::kWarning,
                         Format("Ranks run on CPUs that are all far from their GPU ({})",
                                Count(facts.no_affinity.count, "line")),
                         {facts.Where(facts.no_affinity.first)},
                         "let the launcher bind each rank to the cores of its GPU's NUMA node, or "
                         "not bind at all"});
  }
  for (const auto& [place, devices] : facts.proxy_cores) {
    if (devices.size() < 2) continue;
    findings->push_back(
        {"cpu.proxies-share-core",
         Severity::kNote,
         Format("The proxy threads of {} GPUs of host {} were on CPU core {}", devices.size(),
                facts.hosts[place.first], place.second),
         {facts.Where(devices[0].second), facts.Where(devices[1].second)},
         "if it stays so they slow each other down: see diapason watch, and give each rank cores "
         "of its own"});
    break;
  }
  int64_t threads = 1;
  std::vector<std::string> evidence;
  for (const Variable& variable : facts.variables) {
    if (variable.name != "NCCL_SOCKET_NTHREADS" && variable.name != "NCCL_NSOCKS_PERTHREAD") {
      continue;
    }
    Cursor number(variable.values[0]);
    int64_t value = 0;
    if (number.Number(&value) && value > 0 && value <= 64) threads *= value;
    evidence.push_back(facts.Where(variable.places[0]));
  }
  if (threads >= 16) {
    findings->push_back(
        {"cpu.socket-threads", Severity::kNote,
         Format("Each connection has {} sockets, served by threads of the CPU", threads), evidence,
         "with few free cores less is more: measure 4 and 8"});
  }
}

void SmallMessages(const LogFacts& facts, std::vector<Finding>* findings) {
  for (const LoggedChoice& choice : facts.choices) {
    if (facts.words[choice.protocol] != "SIMPLE" || choice.smallest > 4096) continue;
    const std::string& algorithm = facts.words[choice.algorithm];
    if (algorithm != "RING" && algorithm != "TREE") continue;
    Finding finding;
    finding.id = "latency.protocol";
    finding.severity = Severity::kWarning;
    finding.title = Format(
        "Small messages (from {}) use protocol SIMPLE, which has the highest "
        "latency",
        FormatBytes(choice.smallest));
    finding.evidence.push_back(facts.Where(choice.first));
    finding.action = "let the library choose LL or LL128 for them";
    for (const Variable& variable : facts.variables) {
      if (variable.name != "NCCL_PROTO") continue;
      finding.evidence.push_back(facts.Where(variable.places[0]));
      finding.action = "take NCCL_PROTO out";
    }
    findings->push_back(std::move(finding));
    return;
  }
}

void Memory(const LogFacts& facts, std::vector<Finding>* findings) {
  const LoggedProcess* most = nullptr;
  for (const LoggedProcess& process : facts.processes) {
    if (most == nullptr || process.gpu_bytes > most->gpu_bytes) most = &process;
  }
  if (most == nullptr || most->gpu_bytes < (4ULL << 30)) return;
  findings->push_back(
      {"mem.buffers",
       Severity::kNote,
       Format("The library allocated {:.1f} GiB of GPU memory in one process",
              static_cast<double>(most->gpu_bytes) / (1ULL << 30)),
       {"sum of the lines 'Cuda Alloc Size' of " +
        facts.ProcessText(static_cast<uint32_t>(most - facts.processes.data()))},
       "fewer communicators, or smaller NCCL_BUFFSIZE and NCCL_MAX_NCHANNELS, take less"});
}

}  // namespace

void DiagnoseSetup(const LogFacts& facts, std::vector<Finding>* findings) {
  Versions(facts, findings);
  Plugins(facts, findings);
  Cpu(facts, findings);
  SmallMessages(facts, findings);
  Memory(facts, findings);
}

}  // namespace diapason::logs
