#include "env_plan/placement.h"

#include <algorithm>
#include <set>

#include "base/text.h"

namespace diapason::env_plan {
namespace {

constexpr char kLocalRank[] =
    "${LOCAL_RANK:-${SLURM_LOCALID:-${OMPI_COMM_WORLD_LOCAL_RANK:-${PMI_LOCAL_RANK:-0}}}}";

std::vector<int> Both(const std::vector<int>& some, const std::vector<int>& others) {
  const std::set<int> known(others.begin(), others.end());
  std::vector<int> both;
  for (const int cpu : some) {
    if (known.count(cpu) > 0) both.push_back(cpu);
  }
  std::sort(both.begin(), both.end());
  both.erase(std::unique(both.begin(), both.end()), both.end());
  return both;
}

std::vector<int> AllowedCpus(const host::Machine& machine) {
  std::vector<int> allowed = machine.allowed_cpus;
  if (allowed.empty()) {
    // A copy of a machine: the affinity is unknown, so every CPU of its nodes may be used.
    for (const host::NumaNode& node : machine.numa) {
      for (const int cpu : ParseCpuList(node.cpus)) allowed.push_back(cpu);
    }
  }
  return Both(allowed, allowed);
}

// CPUs near a GPU: as the GPU reports, else its node's, else any.
std::vector<int> CpusOf(const host::Machine& machine, const host::Gpu* gpu,
                        const std::vector<int>& allowed) {
  if (gpu == nullptr) return allowed;
  std::vector<int> near = ParseCpuList(gpu->cpus);
  if (near.empty()) {
    for (const host::NumaNode& node : machine.numa) {
      if (node.index == gpu->numa_node) near = ParseCpuList(node.cpus);
    }
  }
  const std::vector<int> usable = Both(near, allowed);
  return usable.empty() ? allowed : usable;
}

void FindNode(const host::Machine& machine, RankBinding* place) {
  for (const host::NumaNode& node : machine.numa) {
    const std::vector<int> all = ParseCpuList(node.cpus);
    if (Both(place->cpus, all).size() != place->cpus.size()) continue;
    place->node = node.index;
    place->whole_node = all.size() == place->cpus.size();
  }
}

// The CPUs of `pool` as cores, in the order of their first CPU.
std::vector<std::vector<int>> Cores(const std::vector<int>& pool, const CoreOf& core_of) {
  std::map<int, std::vector<int>> cores;
  for (const int cpu : pool) {
    const auto found = core_of.find(cpu);
    cores[found == core_of.end() ? cpu : found->second].push_back(cpu);
  }
  std::vector<std::vector<int>> list;
  list.reserve(cores.size());
  for (auto& [first, cpus] : cores) list.push_back(std::move(cpus));
  return list;
}

// Part `i` of `parts` of a list, as even as possible: the first parts get the remainder.
template <typename T>
std::vector<T> Part(const std::vector<T>& list, size_t i, size_t parts) {
  const size_t least = list.size() / parts;
  const size_t more = list.size() % parts;
  const size_t begin = i * least + std::min(i, more);
  const size_t end = begin + least + (i < more ? 1 : 0);
  return {list.begin() + static_cast<ptrdiff_t>(begin), list.begin() + static_cast<ptrdiff_t>(end)};
}

// If the kernel reports the number of cores, but not which CPUs share one: on x86 the second
// threads are numbered after all first ones.
CoreOf UsualCores(const host::Machine& machine, const std::vector<int>& cpus) {
  CoreOf cores;
  if (machine.cores <= 0 || machine.threads != 2 * machine.cores) return cores;
  for (const int cpu : cpus) cores[cpu] = cpu % machine.cores;
  return cores;
}

}  // namespace

CoreOf ReadCores(const RootFs& tree, const std::vector<int>& cpus) {
  CoreOf cores;
  for (const int cpu : cpus) {
    const std::string folder = Format("/sys/devices/system/cpu/cpu{}/topology/", cpu);
    std::optional<std::string> text = tree.Read(folder + "core_cpus_list");
    if (!text) text = tree.Read(folder + "thread_siblings_list");
    if (!text) continue;
    const std::vector<int> siblings = ParseCpuList(*text);
    if (!siblings.empty()) cores[cpu] = *std::min_element(siblings.begin(), siblings.end());
  }
  return cores;
}

std::vector<RankBinding> PlaceRanks(const host::Machine& machine, const CoreOf& known_cores,
                                    int ranks, std::vector<std::string>* notes) {
  const std::vector<int> allowed = AllowedCpus(machine);
  if (allowed.empty() || ranks <= 0) return {};
  const CoreOf cores = known_cores.empty() ? UsualCores(machine, allowed) : known_cores;
  std::vector<RankBinding> places(static_cast<size_t>(ranks));
  bool blind = false;
  std::map<std::vector<int>, std::vector<size_t>> sharing;
  for (size_t r = 0; r < places.size(); ++r) {
    RankBinding& place = places[r];
    place.rank = static_cast<int>(r);
    std::vector<int> pool = allowed;
    if (!machine.gpus.empty()) {
      const host::Gpu& gpu = machine.gpus[r % machine.gpus.size()];
      place.gpu = gpu.index;
      blind = blind || (gpu.cpus.empty() && gpu.numa_node < 0 && machine.numa.size() > 1);
      pool = CpusOf(machine, &gpu, allowed);
    } else if (machine.numa.size() > 1) {
      // Consecutive ranks are on one node, as launchers place them.
      const size_t node = r * machine.numa.size() / places.size();
      const std::vector<int> usable = Both(ParseCpuList(machine.numa[node].cpus), allowed);
      if (!usable.empty()) pool = usable;
    }
    sharing[pool].push_back(r);
  }
  bool threads = false;
  bool shared = false;
  for (const auto& [pool, members] : sharing) {
    const std::vector<std::vector<int>> list = Cores(pool, cores);
    for (size_t i = 0; i < members.size(); ++i) {
      RankBinding& place = places[members[i]];
      if (list.size() >= members.size()) {
        for (const std::vector<int>& core : Part(list, i, members.size())) {
          place.cpus.insert(place.cpus.end(), core.begin(), core.end());
        }
      } else if (pool.size() >= members.size()) {
        place.cpus = Part(pool, i, members.size());
        threads = true;
      } else {
        place.cpus = pool;
        shared = true;
      }
      std::sort(place.cpus.begin(), place.cpus.end());
      FindNode(machine, &place);
    }
  }
  if (blind) {
    notes->push_back(
        "the machine does not say which CPUs are near which GPU (virtual machines often "
        "do not): CPUs are dealt in order, which may be the wrong node");
  }
  if (threads) {
    notes->push_back(
        "there are fewer cores than ranks near a GPU: ranks share cores, each has "
        "threads of its own");
  }
  if (shared) {
    notes->push_back(
        "there are fewer CPUs than ranks: ranks share them, and threads that spin take "
        "time from each other; start fewer ranks");
  }
  if (machine.cpu_quota > 0 && machine.cpu_quota < static_cast<double>(allowed.size())) {
    notes->push_back(
        Format("the control group allows {:.1f} of the {} CPUs at a time: pinning does "
               "not help a rank that is throttled",
               machine.cpu_quota, allowed.size()));
  }
  return places;
}

std::string NumactlPrefix(const RankBinding& place) {
  const std::string memory = place.node < 0 ? "" : Format(" --membind={}", place.node);
  if (place.whole_node) return Format("numactl --cpunodebind={}", place.node) + memory;
  return "numactl --physcpubind=" + CpuListText(place.cpus) + memory;
}

std::string TasksetPrefix(const RankBinding& place) {
  return "taskset -c " + CpuListText(place.cpus);
}

std::string WrapperLine(const std::vector<RankBinding>& places) {
  std::vector<std::string> cpus;
  std::vector<std::string> nodes;
  bool all_nodes = !places.empty();
  for (const RankBinding& place : places) {
    cpus.push_back(CpuListText(place.cpus));
    nodes.push_back(Format("{}", place.node));
    all_nodes = all_nodes && place.node >= 0;
  }
  std::string line = std::string("bash -c 'r=") + kLocalRank + "; c=(" + Join(cpus, " ") + "); ";
  if (all_nodes) line += "n=(" + Join(nodes, " ") + "); ";
  line += Format("i=$((r % {})); exec numactl --physcpubind=${{c[i]}}", places.size());
  if (all_nodes) line += " --membind=${n[i]}";
  return line + " \"$@\"' rank";
}

std::string CpuMask(const std::vector<int>& cpus) {
  if (cpus.empty()) return "0x0";
  const int most = *std::max_element(cpus.begin(), cpus.end());
  std::string digits(static_cast<size_t>(most / 4 + 1), '0');
  for (const int cpu : cpus) {
    char& digit = digits[digits.size() - 1 - static_cast<size_t>(cpu / 4)];
    const int value = (digit <= '9' ? digit - '0' : digit - 'a' + 10) | (1 << (cpu % 4));
    digit = "0123456789abcdef"[value];
  }
  return "0x" + digits;
}

}  // namespace diapason::env_plan
