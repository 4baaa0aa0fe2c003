#include "measure/group_measurer.h"

#include <algorithm>
#include <cstring>

#include "base/environment.h"
#include "base/secrets.h"
#include "base/text.h"
#include "base/version.h"
#include "comm/backend_facts.h"
#include "domain/fingerprint.h"

namespace diapason::measure {
namespace {

// What rank 0 tells the others: an order, or nothing at the end. The first block has its length;
// what does not fit into it follows in a second.
constexpr size_t kBlockBytes = 256;
constexpr size_t kInline = kBlockBytes - sizeof(uint32_t);
constexpr size_t kMostOrder = size_t{1} << 20;

Result<std::string> Exchange(Group* group, const std::string& order) {
  char block[kBlockBytes] = {};
  auto length = static_cast<uint32_t>(order.size());
  std::memcpy(block, &length, sizeof(length));
  std::copy_n(order.data(), std::min(order.size(), kInline), block + sizeof(length));
  RETURN_IF_ERROR(group->Broadcast(block, block, sizeof(block), DataType::kU8, 0));
  std::memcpy(&length, block, sizeof(length));
  if (length > kMostOrder) return Internal("an order to the ranks is too long");
  std::string text(block + sizeof(length), std::min<size_t>(length, kInline));
  if (length <= kInline) return text;
  text = order;
  text.resize(length);
  RETURN_IF_ERROR(group->Broadcast(text.data(), text.data(), length, DataType::kU8, 0));
  return text;
}

// "gloo 0.5.0, tcp on lo; ..." -> "0.5.0"
std::string VersionIn(const std::string& description) {
  const size_t blank = description.find(' ');
  const size_t comma = description.find_first_of(",;", blank);
  if (blank == std::string::npos || comma == std::string::npos) return "";
  return description.substr(blank + 1, comma - blank - 1);
}

// Hosts in the order of their first rank.
std::string HostList(const std::vector<std::string>& hosts) {
  std::vector<std::string> different;
  for (const std::string& host : hosts) {
    if (std::find(different.begin(), different.end(), host) == different.end()) {
      different.push_back(host);
    }
  }
  return Join(different, ",");
}

Result<Subject> Describe(const RankTimer& rank_timer, const std::string& cluster) {
  const Group& group = *rank_timer.group();
  Subject subject;
  subject.backend = group.backend();
  subject.ranks = group.size();
  subject.nodes = rank_timer.nodes();
  subject.simulated = group.simulated();
  subject.link_peak = group.statistics().link_peak;
  subject.description = group.description();
  subject.hosts = rank_timer.hosts();
  dataset::MachineInfo& machine = subject.machine;
  ASSIGN_OR_RETURN(const Library library, comm::LibraryOf(group.backend(), cluster));
  subject.library = library;
  if (group.simulated()) {
    machine.library_version = "simulated";
    machine.gpu = "simulated " + cluster;
    machine.simulated = true;
  } else {
    machine.library_version = VersionIn(group.description());
    machine.gpu = MachineFingerprint();
    machine.driver = DriverVersion();
    machine.hosts = HostList(rank_timer.hosts());
    machine.environment = EnvironmentThatMatters(ProcessEnvironment());
  }
  machine.library = LibraryName(subject.library);
  machine.tool = std::string("diapason ") + kVersion;
  machine.topology = Count(static_cast<size_t>(subject.nodes), "node") + ", " +
                     Count(static_cast<size_t>(subject.ranks), "rank");
  return subject;
}

}  // namespace

std::map<std::string, std::string> EnvironmentThatMatters(const Environment& environment) {
  // Libraries, their transports, and what they may see. Identities of a job and file names that
  // differ from run to run would make every run another machine.
  constexpr std::string_view kPrefixes[] = {"NCCL_", "RCCL_", "GLOO_", "OMPI_MCA_",
                                            "UCX_",  "FI_",   "HSA_",  "MSCCL"};
  constexpr std::string_view kNames[] = {"CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_MAX_CONNECTIONS",
                                         "HIP_VISIBLE_DEVICES",  "ROCR_VISIBLE_DEVICES",
                                         "DIAPASON_POLICY",      "DIAPASON_MODE"};
  constexpr std::string_view kNot[] = {"NCCL_HOSTID",     "NCCL_COMM_ID",      "NCCL_DEBUG",
                                       "NCCL_DEBUG_FILE", "NCCL_DEBUG_SUBSYS", "NCCL_TUNER_PLUGIN",
                                       "OMPI_MCA_orte_"};
  std::map<std::string, std::string> chosen;
  for (const std::string& name : environment.Names()) {
    const auto begins = [&](std::string_view prefix) { return name.starts_with(prefix); };
    const bool wanted = std::any_of(std::begin(kPrefixes), std::end(kPrefixes), begins) ||
                        std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
    const bool unwanted = std::any_of(std::begin(kNot), std::end(kNot), begins);
    if (wanted && !unwanted) {
      chosen[name] = MaskSecrets(name, environment.Get(name).value_or(""));
    }
  }
  return chosen;
}

Result<std::unique_ptr<GroupMeasurer>> GroupMeasurer::Lead(Group* group,
                                                           const std::string& cluster) {
  ASSIGN_OR_RETURN(std::unique_ptr<RankTimer> rank_timer, RankTimer::Create(group));
  std::unique_ptr<GroupMeasurer> measurer(new GroupMeasurer(std::move(rank_timer)));
  ASSIGN_OR_RETURN(measurer->subject_, Describe(*measurer->rank_timer_, cluster));
  return measurer;
}

GroupMeasurer::~GroupMeasurer() {
  if (!broken_) (void)Tell("");
}

Status GroupMeasurer::Tell(const std::string& order) {
  if (broken_) return Unavailable("the ranks are gone");
  const Result<std::string> told = Exchange(rank_timer_->group(), order);
  if (!told.ok()) broken_ = true;
  return told.status();
}

Result<Measurement> GroupMeasurer::Measure(const Trial& trial) {
  RETURN_IF_ERROR(Tell(EncodeOrder(trial)));
  Measurement measurement = rank_timer_->Measure(trial);
  broken_ = measurement.broke();
  return measurement;
}

Result<Measurement> GroupMeasurer::MeasurePair(int first, int second, uint64_t bytes,
                                               int iterations) {
  RETURN_IF_ERROR(Tell(EncodeOrder(RankPair{first, second, bytes, iterations})));
  Measurement measurement = rank_timer_->MeasurePair(first, second, bytes, iterations);
  broken_ = measurement.broke();
  return measurement;
}

Result<IterationTimes> GroupMeasurer::Iterate(const IterationSpec& spec) {
  RETURN_IF_ERROR(Tell(EncodeOrder(spec)));
  Result<IterationTimes> times = RunIterations(rank_timer_->group(), spec);
  if (!times.ok()) broken_ = true;
  return times;
}

Status GroupMeasurer::Follow(Group* group) {
  ASSIGN_OR_RETURN(const std::unique_ptr<RankTimer> rank_timer, RankTimer::Create(group));
  while (true) {
    ASSIGN_OR_RETURN(const std::string order, Exchange(group, ""));
    if (order.empty()) return {};
    ASSIGN_OR_RETURN(const Order decoded, DecodeOrder(order));
    Measurement measurement;
    if (const auto* trial = std::get_if<Trial>(&decoded)) {
      measurement = rank_timer->Measure(*trial);
    } else if (const auto* pair = std::get_if<RankPair>(&decoded)) {
      measurement =
          rank_timer->MeasurePair(pair->first, pair->second, pair->bytes, pair->iterations);
    } else {
      RETURN_IF_ERROR(RunIterations(group, std::get<IterationSpec>(decoded)));
    }
    if (measurement.broke()) return PeerLost(measurement.note);
  }
}

}  // namespace diapason::measure
