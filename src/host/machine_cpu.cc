#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/text.h"
#include "host/machine_parts.h"

namespace diapason::host {
namespace {

constexpr size_t kLargestCpuInfo = size_t{8} << 20;
constexpr size_t kMostCpus = 8192;
const char* const kCpus = "/sys/devices/system/cpu";

// "123 kB" -> bytes.
uint64_t Kilobytes(const std::string& text) {
  uint64_t number = 0;
  const std::vector<std::string_view> words = Split(text, ' ');
  return !words.empty() && ParseUnsigned(words[0], &number) && number < (uint64_t{1} << 53)
             ? number * 1024
             : 0;
}

void CountCpus(const RootFs& tree, const std::string& info, Machine* machine) {
  std::vector<int> online = ParseCpuList(tree.Read(std::string(kCpus) + "/online").value_or(""));
  if (online.size() > kMostCpus) online.resize(kMostCpus);
  std::set<int64_t> packages;
  std::set<std::pair<int64_t, int64_t>> cores;
  for (const int cpu : online) {
    const std::string folder = Format("{}/cpu{}/topology/", kCpus, cpu);
    const auto package = tree.ReadNumber(folder + "physical_package_id");
    const auto core = tree.ReadNumber(folder + "core_id");
    if (!package || !core) break;
    packages.insert(*package);
    cores.insert({*package, *core});
  }
  machine->threads = static_cast<int>(online.size());
  machine->sockets = static_cast<int>(packages.size());
  machine->cores = static_cast<int>(cores.size());
  if (machine->threads > 0 && machine->sockets > 0) return;
  // A copy without /sys.
  std::set<std::string_view> ids;
  int processors = 0;
  for (const std::string_view line : Split(info, '\n')) {
    if (line.starts_with("processor")) ++processors;
    if (line.starts_with("physical id")) ids.insert(line);
  }
  uint64_t per_socket = 0;
  ParseUnsigned(ValueOf(info, "cpu cores"), &per_socket);
  if (machine->threads == 0) machine->threads = processors;
  machine->sockets = static_cast<int>(ids.size());
  machine->cores = static_cast<int>(std::min<uint64_t>(per_socket, kMostCpus)) * machine->sockets;
}

// Usually one word; several if CPUs differ.
std::string Governor(const RootFs& tree, int threads) {
  std::set<std::string> governors;
  for (int cpu = 0; cpu < threads; ++cpu) {
    const auto one = tree.Read(Format("{}/cpu{}/cpufreq/scaling_governor", kCpus, cpu), 256);
    if (one) governors.insert(*one);
    // If the first CPU has none, no other has.
    if (!one && cpu == 0) break;
  }
  return Join({governors.begin(), governors.end()}, ",");
}

}  // namespace

void LookAtCpus(const RootFs& tree, Machine* machine) {
  const std::string info = tree.Read("/proc/cpuinfo", kLargestCpuInfo).value_or("");
  machine->cpu_model = ValueOf(info, "model name");
  CountCpus(tree, info, machine);
  machine->governor = Governor(tree, machine->threads);
  machine->isolated_cpus = tree.Read(std::string(kCpus) + "/isolated").value_or("");
  machine->memory_bytes = Kilobytes(ValueOf(tree.Read("/proc/meminfo").value_or(""), "MemTotal"));
  machine->allowed_cpus =
      ParseCpuList(ValueOf(tree.Read("/proc/self/status").value_or(""), "Cpus_allowed_list"));
  const std::string nodes = "/sys/devices/system/node";
  for (const std::string& name : tree.List(nodes)) {
    uint64_t index = 0;
    if (!name.starts_with("node") || !ParseUnsigned(name.substr(4), &index) || index > kMostCpus) {
      continue;
    }
    NumaNode node;
    node.index = static_cast<int>(index);
    node.cpus = tree.Read(nodes + "/" + name + "/cpulist").value_or("");
    const std::string memory = tree.Read(nodes + "/" + name + "/meminfo").value_or("");
    node.memory_bytes = Kilobytes(ValueOf(memory, Format("Node {} MemTotal", node.index)));
    machine->numa.push_back(std::move(node));
  }
}

}  // namespace diapason::host
