#include "flight_recorder/dump_builder.h"

#include <algorithm>
#include <iterator>

#include "base/text.h"

namespace diapason::flight_recorder {
namespace {

constexpr size_t kLongestSizes = 160;
constexpr size_t kMostNames = 4096;  // of groups in one dump
constexpr size_t kMostDumpMembers = 1 << 20;
constexpr int kMostFrames = 3;

// "nccl:send 0->3" without the backend.
std::string_view WithoutBackend(std::string_view name) {
  const size_t colon = name.find(':');
  return colon == std::string_view::npos ? name : name.substr(colon + 1);
}

// The numbers in "send 0->3" and "recv 3<-0".
void ReadPeers(std::string_view text, Entry* entry) {
  const bool send = text.find("->") != std::string_view::npos;
  const size_t arrow = send ? text.find("->") : text.find("<-");
  if (arrow == std::string_view::npos) return;
  int64_t left = -1;
  int64_t right = -1;
  if (!ParseSigned(Trim(text.substr(0, arrow)), &left)) return;
  if (!ParseSigned(Trim(text.substr(arrow + 2)), &right)) return;
  if (left < 0 || right < 0 || left > INT32_MAX || right > INT32_MAX) return;
  entry->number_from = static_cast<int32_t>(send ? left : right);
  entry->number_to = static_cast<int32_t>(send ? right : left);
}

bool AllNumbers(const std::vector<std::pair<int64_t, std::string>>& keys) {
  return std::all_of(keys.begin(), keys.end(), [](const auto& key) { return key.first >= 0; });
}

std::pair<int64_t, std::string> NumberKey(const std::string& text) {
  int64_t number = -1;
  return {ParseSigned(text, &number) ? number : -1, text};
}

}  // namespace

void TensorSizes::BeginTensor() {
  any_ = true;
  first_ = true;
  product_ = 1;
  if (text_.size() < kLongestSizes) text_ += text_.empty() ? "[" : ", [";
}

void TensorSizes::Dimension(int64_t size) {
  if (text_.size() < kLongestSizes) {
    if (!first_) text_ += ",";
    text_ += std::to_string(size);
  }
  first_ = false;
  if (size < 0 || __builtin_mul_overflow(product_, size, &product_)) unknown_ = true;
}

void TensorSizes::EndTensor() {
  if (text_.size() < kLongestSizes) text_ += "]";
  if (__builtin_add_overflow(sum_, product_, &sum_)) unknown_ = true;
}

int64_t TensorSizes::elements() const { return any_ && !unknown_ ? sum_ : -1; }

void RawEntry::Frame(std::string_view file, int64_t line, std::string_view function) {
  if (count_ >= kMostFrames || (file.empty() && function.empty())) return;
  const std::string text = Format("{}:{} {}", file.substr(0, 120), line, function.substr(0, 60));
  if (file.find("torch/distributed/") != std::string_view::npos ||
      file.find("torch/_") != std::string_view::npos) {
    if (own_frame_.empty()) own_frame_ = text;
    return;
  }
  ++count_;
  frames_ += (frames_.empty() ? "" : " < ") + text;
}

std::string RawEntry::FramesText() const { return frames_.empty() ? own_frame_ : frames_; }

DumpBuilder::DumpBuilder(FlightRecord* record, std::string name) : record_(record) {
  dump_.name = std::move(name);
}

void DumpBuilder::Version(std::string_view version) { dump_.version = version.substr(0, 16); }

void DumpBuilder::ConfigRanks(const std::string& group, std::string_view ranks) {
  int64_t number = -1;
  for (const char c : ranks) {
    if (c >= '0' && c <= '9') {
      if (number < (1 << 30)) number = std::max<int64_t>(number, 0) * 10 + (c - '0');
      continue;
    }
    if (number >= 0) ConfigRank(group, number);
    number = -1;
  }
  if (number >= 0) ConfigRank(group, number);
}

void DumpBuilder::ConfigRank(const std::string& group, int64_t rank) {
  if (rank < 0 || ++members_ > kMostDumpMembers) return;
  if (config_.size() >= kMostNames && config_.count(group) == 0) return;
  config_[group].ranks.push_back(rank);
}

void DumpBuilder::ConfigDescription(const std::string& group, std::string_view description) {
  if (config_.size() >= kMostNames && config_.count(group) == 0) return;
  config_[group].description = description.substr(0, 80);
}

void DumpBuilder::StatusNumber(const std::string& group, std::string_view key, int64_t value) {
  if (status_.size() >= kMostNames && status_.count(group) == 0) return;
  GroupStatus& status = status_[group];
  if (key == "last_enqueued_collective") status.enqueued = value;
  if (key == "last_started_collective") status.started = value;
  if (key == "last_completed_collective") status.completed = value;
}

void DumpBuilder::CommNumber(const std::string& communicator, std::string_view key, int64_t value) {
  if (comms_.size() >= kMostNames && comms_.count(communicator) == 0) return;
  if (key == "rank") comms_[communicator].rank = value;
  if (key == "nRanks") comms_[communicator].ranks = value;
}

void DumpBuilder::Add(const RawEntry& raw) {
  Entry entry;
  entry.record = raw.record >= 0 ? raw.record : static_cast<int64_t>(seen_);
  ++seen_;
  std::string_view operation = WithoutBackend(raw.profiling_name);
  const size_t blank = operation.find(' ');
  if (blank != std::string_view::npos) {
    ReadPeers(operation.substr(blank + 1), &entry);
    operation = operation.substr(0, blank);
  }
  entry.p2p = raw.p2p || operation == "send" || operation == "recv";
  entry.sequence = raw.sequence >= 0 || entry.p2p ? raw.sequence : raw.old_sequence;
  entry.p2p_sequence = raw.p2p_sequence >= 0 ? raw.p2p_sequence : raw.old_sequence;
  entry.created_ns = raw.created_ns;
  entry.state = raw.state == "completed" ? State::kCompleted
                : raw.state == "started" ? State::kStarted
                                         : State::kScheduled;
  Call call;
  call.operation = operation.substr(0, 80);
  call.inputs = raw.inputs.text();
  call.outputs = raw.outputs.text();
  call.input_elements = raw.inputs.elements();
  call.output_elements = raw.outputs.elements();
  call.input_types = raw.input_types;
  call.output_types = raw.output_types;
  entry.call = record_->CallId(call);
  const std::string frames = raw.FramesText();
  if (!frames.empty()) entry.frames = record_->frames.Id(frames);
  const std::string name = raw.group.empty() ? std::to_string(raw.group_number) : raw.group;
  const auto known = name_ids_.find(name);
  if (known != name_ids_.end()) {
    entry.group = known->second;
  } else if (names_.size() < kMostNames) {
    entry.group = static_cast<uint32_t>(names_.size());
    name_ids_.emplace(name, entry.group);
    names_.emplace_back(name, raw.description);
  } else {
    return;
  }
  if (raw.group_number >= 0 && number_names_.size() < kMostNames) {
    number_names_[raw.group_number] = entry.group;
  }
  // The newest count: the recorder writes them in the order of calls.
  if (dump_.entries.size() >= 2 * FlightRecord::kMostEntriesOfDump) {
    dump_.entries.erase(dump_.entries.begin(),
                        dump_.entries.begin() + FlightRecord::kMostEntriesOfDump);
  }
  dump_.entries.push_back(entry);
}

void DumpBuilder::ResolveGroups() {
  for (auto& [name, config] : config_) {
    std::sort(config.ranks.begin(), config.ranks.end());
    config.ranks.erase(std::unique(config.ranks.begin(), config.ranks.end()), config.ranks.end());
    const uint32_t group = record_->GroupId(name, config.description, config.ranks);
    if (group != kNoIndex) dump_.groups.push_back(group);
  }
  for (const auto& [name, description] : names_) {
    const auto config = config_.find(name);
    name_groups_.push_back(config == config_.end()
                               ? record_->GroupId(name, description, {})
                               : record_->GroupId(name, description, config->second.ranks));
  }
  std::vector<Entry> kept;
  for (Entry& entry : dump_.entries) {
    entry.group = name_groups_[entry.group];
    if (entry.group != kNoIndex) kept.push_back(entry);
  }
  dump_.entries = std::move(kept);
}

// The status names groups by their numbers on this rank. Entries show which is which; a rank
// without entries has its groups in the order in which it created them.
void DumpBuilder::ResolveStatus() {
  std::map<std::string, uint32_t> by_order;
  std::vector<std::pair<int64_t, std::string>> numbers;
  std::vector<std::pair<int64_t, std::string>> names;
  for (const auto& [number, status] : status_) numbers.push_back(NumberKey(number));
  for (const auto& [name, config] : config_) names.push_back(NumberKey(name));
  if (numbers.size() == names.size() && AllNumbers(numbers) && AllNumbers(names)) {
    std::sort(numbers.begin(), numbers.end());
    std::sort(names.begin(), names.end());
    bool agrees = true;
    for (size_t i = 0; i < numbers.size(); ++i) {
      const Config& config = config_[names[i].second];
      by_order[numbers[i].second] =
          record_->GroupId(names[i].second, config.description, config.ranks);
      const auto entry = number_names_.find(numbers[i].first);
      agrees = agrees &&
               (entry == number_names_.end() || names_[entry->second].first == names[i].second);
    }
    if (!agrees) by_order.clear();
  }
  for (auto& [number, status] : status_) {
    const auto entry = number_names_.find(NumberKey(number).first);
    const auto ordered = by_order.find(number);
    if (entry != number_names_.end()) {
      status.group = name_groups_[entry->second];
    } else if (ordered != by_order.end()) {
      status.group = ordered->second;
    }
    (status.group != kNoIndex ? dump_.status : dump_.unknown_status).push_back(status);
  }
}

// "send 0->3" is the rank with number 0 of its group.
void DumpBuilder::NarrowBySends(std::vector<int64_t>* candidates) const {
  for (const Entry& entry : dump_.entries) {
    if (entry.number_from < 0) continue;
    const std::vector<int64_t>& ranks = record_->groups[entry.group].ranks;
    const bool send = record_->Operation(entry) == "send";
    const auto own = static_cast<size_t>(send ? entry.number_from : entry.number_to);
    if (own < ranks.size()) {
      *candidates = {ranks[own]};
      return;
    }
  }
}

int64_t DumpBuilder::Rank(int64_t named) const {
  // A rank is a member of all groups that it lists.
  std::vector<int64_t> candidates;
  bool first = true;
  for (const auto& [name, config] : config_) {
    if (config.ranks.empty()) continue;
    if (first) {
      candidates = config.ranks;
      first = false;
      continue;
    }
    std::vector<int64_t> common;
    std::set_intersection(candidates.begin(), candidates.end(), config.ranks.begin(),
                          config.ranks.end(), std::back_inserter(common));
    candidates = std::move(common);
  }
  const bool possible =
      candidates.empty() || std::binary_search(candidates.begin(), candidates.end(), named);
  if (named >= 0 && possible) return named;
  if (candidates.size() > 1) NarrowBySends(&candidates);
  if (candidates.size() == 1) return candidates[0];
  int64_t largest = 0;
  int64_t found = -1;
  for (const auto& [name, comm] : comms_) {
    if (comm.rank < 0 || comm.ranks <= largest) continue;
    largest = comm.ranks;
    found = comm.rank;
  }
  if (found >= 0) return found;
  if (named >= 0) return named;
  int64_t free = 0;
  while (record_->Find(free) != nullptr) ++free;
  return free;
}

void DumpBuilder::Finish(int64_t rank, bool truncated) {
  if (dump_.entries.size() > FlightRecord::kMostEntriesOfDump) {
    dump_.entries.erase(dump_.entries.begin(),
                        dump_.entries.end() - FlightRecord::kMostEntriesOfDump);
  }
  ResolveGroups();
  ResolveStatus();
  dump_.truncated = truncated;
  dump_.rank = Rank(rank);
  record_->AddDump(std::move(dump_));
}

}  // namespace diapason::flight_recorder
