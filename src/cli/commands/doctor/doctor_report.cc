#include "cli/commands/doctor/doctor_report.h"

#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "base/version.h"
#include "cli/framework/findings.h"
#include "cli/framework/json_text.h"
#include "domain/library_version.h"

namespace diapason::cli {
namespace {

using doctor::CheckInputs;
using host::Gpu;
using host::LibraryFile;
using nlohmann::ordered_json;

constexpr int kSchema = 1;
constexpr size_t kLargestReport = size_t{4} << 20;
constexpr size_t kMostFacts = 2000;
constexpr size_t kLongestText = 1024;
constexpr int kDeepest = 16;

std::string Dump(const ordered_json& json) { return JsonText(json) + "\n"; }

std::string TimeText() { return UtcText(time(nullptr), "%Y-%m-%dT%H:%M:%SZ"); }

template <typename Value>
ordered_json Maybe(const std::optional<Value>& value) {
  return value ? ordered_json(*value) : ordered_json(nullptr);
}

ordered_json Limit(const std::optional<uint64_t>& limit) {
  if (limit == host::kUnlimited) return "unlimited";
  return Maybe(limit);
}

ordered_json GpuJson(const Gpu& gpu) {
  return {{"index", gpu.index},
          {"vendor", gpu.vendor == host::Vendor::kAmd ? "amd" : "nvidia"},
          {"name", gpu.name},
          {"architecture", gpu.architecture},
          {"uuid", gpu.uuid},
          {"pci", gpu.pci},
          {"numa_node", gpu.numa_node},
          {"cpus", gpu.cpus},
          {"memory_bytes", gpu.memory_bytes},
          {"memory_used", gpu.memory_used},
          {"pcie",
           {{"gts", gpu.link.gts},
            {"most_gts", gpu.link.most_gts},
            {"width", gpu.link.width},
            {"most_width", gpu.link.most_width}}},
          {"links_up", gpu.fabric_links},
          {"links_down", gpu.fabric_links_down},
          {"link_errors", gpu.fabric_errors},
          {"fabric_state", gpu.fabric_state},
          {"temperature_c", gpu.temperature_c},
          {"power_w", gpu.power_w},
          {"power_limit_w", gpu.power_limit_w},
          {"clock_mhz", gpu.clock_mhz},
          {"most_clock_mhz", gpu.most_clock_mhz},
          {"throttling", gpu.throttling},
          {"ecc_uncorrected", gpu.ecc_uncorrected},
          {"persistence", gpu.persistence},
          {"mode", gpu.mode},
          {"mig", gpu.mig}};
}

ordered_json NetworkJson(const host::Machine& machine) {
  ordered_json ports = ordered_json::array();
  for (const host::RdmaPort& port : machine.rdma) {
    ports.push_back({{"device", port.device},
                     {"port", port.port},
                     {"state", port.state},
                     {"link_layer", port.link_layer},
                     {"gbits", port.gbits},
                     {"interface", port.interface},
                     {"numa_node", port.numa_node},
                     {"pci", port.pci},
                     {"gids", port.gids},
                     {"rocev2_ipv4_gid", port.rocev2_ipv4_gid},
                     {"link_downed", port.link_downed},
                     {"symbol_errors", port.symbol_errors}});
  }
  ordered_json interfaces = ordered_json::array();
  for (const host::NetInterface& interface : machine.interfaces) {
    interfaces.push_back({{"name", interface.name},
                          {"up", interface.up},
                          {"gbits", interface.gbits},
                          {"mtu", interface.mtu},
                          {"virtual", interface.virtual_one},
                          {"numa_node", interface.numa_node}});
  }
  return {{"rdma", ports}, {"interfaces", interfaces}};
}

ordered_json MachineJson(const host::Machine& machine) {
  ordered_json gpus = ordered_json::array();
  for (const Gpu& gpu : machine.gpus) gpus.push_back(GpuJson(gpu));
  ordered_json pairs = ordered_json::array();
  for (const host::GpuPair& pair : machine.pairs) {
    pairs.push_back({{"from", pair.from},
                     {"to", pair.to},
                     {"path", pair.path},
                     {"peer_read", Maybe(pair.peer_read)}});
  }
  ordered_json nodes = ordered_json::array();
  for (const host::NumaNode& node : machine.numa) {
    nodes.push_back(
        {{"index", node.index}, {"cpus", node.cpus}, {"memory_bytes", node.memory_bytes}});
  }
  return {{"kernel", machine.kernel},
          {"distribution", machine.distribution},
          {"cpu_model", machine.cpu_model},
          {"sockets", machine.sockets},
          {"cores", machine.cores},
          {"threads", machine.threads},
          {"allowed_cpus", CpuListText(machine.allowed_cpus)},
          {"cpu_quota", machine.cpu_quota},
          {"memory_bytes", machine.memory_bytes},
          {"memory_limit", machine.memory_limit},
          {"governor", machine.governor},
          {"isolated_cpus", machine.isolated_cpus},
          {"hypervisor", machine.hypervisor},
          {"cloud", machine.cloud},
          {"container", machine.container},
          {"numa", nodes},
          {"driver", machine.driver},
          {"driver_supports", machine.driver_supports},
          {"gpus_on_bus", machine.gpus_on_bus},
          {"gpus", gpus},
          {"pairs", pairs},
          {"network", NetworkJson(machine)},
          {"unknown", machine.unknown}};
}

ordered_json SystemJson(const host::System& system) {
  return {{"shm_bytes", Maybe(system.shm_bytes)},
          {"shm_free", Maybe(system.shm_free)},
          {"memlock", Limit(system.memlock)},
          {"open_files", Limit(system.open_files)},
          {"processes", Limit(system.processes)},
          {"stack", Limit(system.stack)},
          {"numa_balancing", Maybe(system.numa_balancing)},
          {"huge_pages", system.huge_pages},
          {"iommu", system.iommu},
          {"access_control", Maybe(system.access_control)},
          {"peer_memory", system.peer_memory},
          {"dma_buf", system.dma_buf},
          {"gdrcopy", system.gdrcopy},
          {"rdma_files", system.rdma_files},
          {"nvswitch", system.switches},
          {"fabric_manager", Maybe(system.fabric_manager)}};
}

ordered_json FileJson(const LibraryFile& file) {
  return {{"path", file.path},
          {"real_path", file.real_path},
          {"library", LibraryName(file.library)},
          {"version", doctor::VersionOf(file)},
          {"version_text", file.version_text},
          {"toolkit", file.toolkit},
          {"tuner_apis", file.tuner_apis},
          {"profiler_apis", file.profiler_apis},
          {"env_apis", file.env_apis},
          {"net_apis", file.net_apis},
          {"found_by", file.found_by}};
}

ordered_json JobLibraryJson(const host::JobLibrary& job) {
  return {{"library", LibraryName(job.library)},
          {"file", job.file},
          {"version", LibraryVersionText(job.version)},
          {"because", job.because},
          {"program_file", job.program_file},
          {"program_version", LibraryVersionText(job.program_version)}};
}

ordered_json PluginJson(const doctor::PluginFile& plugin) {
  return {{"path", plugin.path},
          {"trouble", plugin.trouble},
          {"tuner_apis", plugin.tuner_apis},
          {"profiler_apis", plugin.profiler_apis},
          {"env_apis", plugin.env_apis}};
}

ordered_json SoftwareJson(const CheckInputs& facts) {
  ordered_json files = ordered_json::array();
  for (const LibraryFile& file : facts.libraries) files.push_back(FileJson(file));
  ordered_json torches = ordered_json::array();
  for (const host::Torch& torch : facts.torch) {
    torches.push_back({{"folder", torch.folder},
                       {"version", torch.version},
                       {"toolkit", torch.toolkit},
                       {"with_nccl", torch.with_nccl},
                       {"loads", torch.loads},
                       {"because", torch.taken_because}});
  }
  return {{"libraries", files},
          {"nccl_loaded", facts.nccl},
          {"rccl_loaded", facts.rccl},
          {"job_library", JobLibraryJson(facts.job)},
          {"pytorch", torches},
          {"plugin", PluginJson(facts.plugin)},
          {"usable_backends", facts.usable_backends}};
}

ordered_json VariablesJson(const std::vector<knobs::Assignment>& assignments) {
  ordered_json list = ordered_json::array();
  for (const knobs::Assignment& one : assignments) {
    list.push_back({{"name", one.name},
                    {"value", one.value},
                    {"source", one.source},
                    {"overridden", one.overridden}});
  }
  return list;
}

ordered_json TestJson(const doctor::TestResult& test) {
  if (!test.wanted) return nullptr;
  ordered_json goals = ordered_json::array();
  for (const doctor::GoalResult& goal : test.goals) {
    goals.push_back({{"name", goal.name},
                     {"what", goal.what},
                     {"goal", goal.goal},
                     {"median", goal.value},
                     {"interval", goal.interval},
                     {"verdict", goal.verdict}});
  }
  return {{"on_gpus", test.on_gpus},
          {"trouble", test.trouble},
          {"measured", test.headline},
          {"goals", goals},
          {"cpu_allreduce_us", test.fallback_us},
          {"cpu_allreduce", test.fallback_what}};
}

std::string TextOf(const nlohmann::json& json, const char* key) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_string()) return "";
  return found->get<std::string>().substr(0, kLongestText);
}

}  // namespace

std::string DoctorJson(const CheckInputs& facts, const std::vector<Finding>& findings,
                       const std::vector<doctor::ChecklistItem>& checklist) {
  ordered_json list = ordered_json::array();
  for (const doctor::ChecklistItem& item : checklist) {
    list.push_back({{"id", item.id},
                    {"text", item.text},
                    {"state", doctor::StateName(item.state)},
                    {"because", item.because}});
  }
  ordered_json compare = ordered_json::object();
  for (const auto& [name, value] : doctor::ComparableFacts(facts)) compare[name] = value;
  return Dump({{"report", "diapason doctor"},
               {"schema", kSchema},
               {"tool_version", kVersion},
               {"time", TimeText()},
               {"host", facts.machine.host_name},
               {"machine", MachineJson(facts.machine)},
               {"system", SystemJson(facts.system)},
               {"software", SoftwareJson(facts)},
               {"variables", VariablesJson(facts.assignments)},
               {"test", TestJson(facts.test)},
               {"findings", ordered_json::parse(FindingsJson(findings))},
               {"checklist", list},
               {"compare", compare}});
}

std::string ProcessJson(const doctor::ProcessFacts& facts, const std::vector<Finding>& findings) {
  ordered_json files = ordered_json::array();
  for (const LibraryFile& file : facts.libraries) files.push_back(FileJson(file));
  ordered_json threads = ordered_json::array();
  for (const doctor::ThreadUse& use : doctor::UseOfThreads(facts.before, facts.after)) {
    threads.push_back({{"name", use.name},
                       {"role", ThreadRoleName(use.role)},
                       {"cpu", use.busy},
                       {"waiting", use.waiting},
                       {"last_cpu", use.last_cpu},
                       {"allowed_cpus", use.allowed_cpus}});
  }
  return Dump({{"report", "diapason doctor process"},
               {"schema", kSchema},
               {"time", TimeText()},
               {"pid", facts.after.pid},
               {"name", facts.after.name},
               {"seconds", facts.after.time_s - facts.before.time_s},
               {"resident_bytes", facts.after.resident},
               {"libraries", facts.mapped_known ? files : ordered_json(nullptr)},
               {"threads", threads},
               {"variables", VariablesJson(facts.assignments)},
               {"findings", ordered_json::parse(FindingsJson(findings))}});
}

std::string LibraryJson(const LibraryFile& file, const doctor::PluginFile& plugin) {
  ordered_json json = FileJson(file);
  json.erase("found_by");
  json["plugin"] = plugin.path;
  json["would_use"] = {{"tuner", doctor::CommonApi(file.tuner_apis, plugin.tuner_apis)},
                       {"profiler", doctor::CommonApi(file.profiler_apis, plugin.profiler_apis)},
                       {"env", doctor::CommonApi(file.env_apis, plugin.env_apis)}};
  return Dump(json);
}

Result<doctor::HostFacts> ReadDoctorReport(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kLargestReport));
  bool too_deep = false;
  const auto shallow = [&too_deep](int depth, nlohmann::json::parse_event_t, nlohmann::json&) {
    if (depth > kDeepest) too_deep = true;
    return !too_deep;
  };
  const nlohmann::json json = nlohmann::json::parse(text, shallow, false);
  if (json.is_discarded() || too_deep || !json.is_object() ||
      TextOf(json, "report") != "diapason doctor") {
    return Invalid(path + ": not a report written by `diapason doctor --json`");
  }
  const auto schema = json.find("schema");
  if (schema == json.end() || !schema->is_number_integer() || *schema != kSchema) {
    return Invalid(
        Format("{}: a report of another version of this tool (this version reads schema {})", path,
               kSchema));
  }
  const auto compare = json.find("compare");
  if (compare == json.end() || !compare->is_object()) {
    return Invalid(path + ": the report has no section 'compare'");
  }
  if (compare->size() > kMostFacts) {
    return Invalid(Format("{}: more than {} facts to compare", path, kMostFacts));
  }
  doctor::HostFacts host;
  host.host = TextOf(json, "host");
  if (host.host.empty()) host.host = path;
  for (const auto& [name, value] : compare->items()) {
    if (!value.is_string()) continue;
    host.facts.emplace_back(name.substr(0, kLongestText),
                            value.get<std::string>().substr(0, kLongestText));
  }
  return host;
}

}  // namespace diapason::cli
