#include "logs/flight.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/text.h"
#include "logs/cursor.h"
#include "logs/json_input.h"

namespace diapason::logs {
namespace {

constexpr size_t kMostListedRanks = 262144;  // of all groups together
constexpr size_t kMostDisagreements = 64;

// Operations whose sizes must be the same on every rank; with the others ranks may send different
// amounts.
bool SameSizes(std::string_view operation) {
  for (const std::string_view uneven :
       {"to_all", "alltoall", "scatter", "gather", "send", "recv", "coalesced"}) {
    if (operation.find(uneven) != std::string_view::npos) {
      // These are even by definition.
      return operation.find("_base") != std::string_view::npos ||
             operation.find("into_tensor") != std::string_view::npos;
    }
  }
  return true;
}

// Tracks the position in the document and the values of the current entry.
class Handler : public nlohmann::json_sax<nlohmann::json> {
 public:
  Handler(uint32_t file, int64_t rank, FlightRecord* flight)
      : file_(file), rank_(rank), flight_(flight) {}

  bool known() const { return known_; }
  const std::string& why() const { return why_; }

  bool null() override { return true; }
  bool boolean(bool value) override {
    if (InEntry() && key_ == "is_p2p") is_p2p_ = value;
    return true;
  }
  bool number_integer(number_integer_t value) override { return Number(value); }
  bool number_unsigned(number_unsigned_t value) override {
    return Number(static_cast<int64_t>(std::min<number_unsigned_t>(value, INT64_MAX)));
  }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }

  bool string(string_t& value) override {
    int64_t number = 0;
    // The recorder writes the status as text.
    if (path_.size() == 3 && path_[0] == "pg_status" && ParseSigned(value, &number)) {
      return Number(number);
    }
    if (path_.size() == 1 && key_ == "version") flight_->version = value.substr(0, 16);
    if (path_.size() == 3 && path_[0] == "pg_config") {
      if (key_ == "desc") Group(path_[2]).description = value.substr(0, 80);
      if (key_ == "ranks" && Group(path_[2]).ranks.empty()) RankList(value, path_[2]);
    }
    if (InEntry()) {
      if (key_ == "profiling_name") operation_ = value.substr(0, 80);
      if (key_ == "state") state_ = value.substr(0, 16);
    }
    if (InEntryList("process_group") && group_.empty()) group_ = value.substr(0, 80);
    if (InEntryList("input_dtypes")) Append(&types_, value);
    if (path_.size() == 5 && path_[0] == "entries" && path_[3] == "frames" && frames_ == 1) {
      if (key_ == "name") frame_name_ = value.substr(0, 80);
      if (key_ == "filename") frame_file_ = value.substr(0, 120);
    }
    return true;
  }

  bool start_object(std::size_t) override {
    if (path_.size() == 2 && path_[0] == "entries") BeginEntry();
    if (path_.size() == 4 && path_[3] == "frames") ++frames_;
    return Push();
  }
  bool key(string_t& value) override {
    key_ = value.substr(0, 80);
    if (path_.size() == 1 && (key_ == "entries" || key_ == "pg_config" || key_ == "pg_status")) {
      known_ = true;
    }
    return true;
  }
  bool end_object() override {
    Pop();
    if (path_.size() == 2 && path_[0] == "entries") EndEntry();
    return true;
  }
  bool start_array(std::size_t) override {
    if (InEntry() && key_ == "input_sizes") sizes_.clear();
    if (InEntryList("input_sizes")) {
      Append(&sizes_, "[");
    }
    return Push();
  }
  bool end_array() override {
    Pop();
    if (InEntryList("input_sizes")) sizes_ += "]";
    return true;
  }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception& error) override {
    (void)error;
    why_ = Format("the JSON breaks off or is wrong at byte {}", position);
    return false;
  }

 private:
  bool InEntry() const { return path_.size() == 3 && path_[0] == "entries"; }
  bool InEntryList(std::string_view name) const {
    return path_.size() == 4 && path_[0] == "entries" && path_[3] == name;
  }
  bool Push() {
    path_.push_back(key_);
    // The root has no name: its members are at depth one.
    if (path_.size() == 1) path_[0].clear();
    if (path_.size() == 2) path_[0] = key_;
    key_.clear();
    return true;
  }
  void Pop() {
    if (path_.empty()) return;
    key_ = path_.back();
    path_.pop_back();
  }
  static void Append(std::string* text, std::string_view more) {
    if (text->size() < 120) *text += more;
  }

  bool Number(int64_t value) {
    if (InEntry()) {
      if (key_ == "collective_seq_id") sequence_ = value;
      if (key_ == "seq_id" && sequence_ < 0) sequence_ = value;
      if (key_ == "pg_id") group_number_ = value;
    }
    if (path_.size() == 5 && path_[0] == "entries" && path_[3] == "input_sizes") {
      if (!sizes_.empty() && sizes_.back() != '[') Append(&sizes_, ",");
      Append(&sizes_, std::to_string(value));
    }
    if (path_.size() == 5 && path_[3] == "frames" && frames_ == 1 && key_ == "line") {
      frame_line_ = value;
    }
    if (path_.size() == 3 && path_[0] == "pg_status") {
      // By number here, by name elsewhere: matched when the entries have shown which is which.
      Status& status = status_[path_[2]];
      if (status_.size() > 1024) return true;
      if (key_ == "last_enqueued_collective") status.enqueued = value;
      if (key_ == "last_started_collective") status.started = value;
      if (key_ == "last_completed_collective") status.completed = value;
    }
    return true;
  }

  FlightGroup& Group(const std::string& name) { return flight_->about[flight_->groups.Id(name)]; }

  void RankList(std::string_view text, const std::string& group) {
    std::vector<int64_t>& ranks = Group(group).ranks;
    Cursor cursor(text);
    int64_t rank = 0;
    while (!cursor.AtEnd() && listed_ranks_ < kMostListedRanks) {
      if (cursor.Number(&rank)) {
        ranks.push_back(rank);
        ++listed_ranks_;
      } else {
        cursor.Skip(cursor.rest().substr(0, 1));
      }
    }
  }

  void BeginEntry() {
    group_.clear();
    operation_.clear();
    state_.clear();
    sizes_.clear();
    types_.clear();
    frame_name_.clear();
    frame_file_.clear();
    frame_line_ = 0;
    frames_ = 0;
    sequence_ = -1;
    group_number_ = -1;
    is_p2p_ = false;
  }

  void EndEntry() {
    ++flight_->entries;
    if (group_.empty()) group_ = std::to_string(group_number_);
    const uint32_t group = flight_->groups.Id(group_);
    if (group == kNoName) return;
    if (group_number_ >= 0 && numbers_.size() < 1024) {
      numbers_[std::to_string(group_number_)] = group;
    }
    FlightRank* known = flight_->Find(group, rank_);
    if (known == nullptr) return;
    known->file = file_;
    const bool p2p = is_p2p_ || operation_.find("send") != std::string::npos ||
                     operation_.find("recv") != std::string::npos;
    if (p2p) {
      if (state_ != "completed") ++known->point_to_point_open;
      return;
    }
    if (sequence_ < 0) return;
    if (known->first < 0 || sequence_ < known->first) known->first = sequence_;
    known->last_enqueued = std::max(known->last_enqueued, sequence_);
    if (state_ != "scheduled") known->last_started = std::max(known->last_started, sequence_);
    std::string call = operation_;
    if (call.starts_with("nccl:")) call = call.substr(5);
    std::string shown = call + " " + sizes_ + " " + types_;
    if (state_ == "completed") {
      known->last_completed = std::max(known->last_completed, sequence_);
    } else if (known->first_open < 0 || sequence_ < known->first_open) {
      known->first_open = sequence_;
      known->open_operation = shown + ", " + state_;
      known->open_frame.clear();
      if (!frame_file_.empty()) {
        known->open_frame = Format("{}:{} {}", frame_file_, frame_line_, frame_name_);
      }
    }
    Compare(group, SameSizes(call) ? shown : call);
  }

  void Compare(uint32_t group, const std::string& call) {
    if (flight_->signatures.empty()) flight_->signatures.resize(FlightRecord::kMostSignatures);
    const uint64_t slot = (static_cast<uint64_t>(sequence_) + group * 0x9e3779b97f4a7c15ULL) %
                          FlightRecord::kMostSignatures;
    FlightRecord::Signature& signature = flight_->signatures[slot];
    const uint32_t id = flight_->calls.Id(call);
    if (signature.group != group || signature.sequence != sequence_) {
      // The latest entries count.
      if (signature.group == group && signature.sequence > sequence_) return;
      signature = {group, sequence_, rank_, id};
      return;
    }
    if (signature.call == id || id == kNoName || signature.rank == rank_) return;
    if (flight_->disagreements.size() >= kMostDisagreements) return;
    FlightDisagreement difference;
    difference.group = group;
    difference.sequence = sequence_;
    difference.ranks[0] = signature.rank;
    difference.ranks[1] = rank_;
    difference.calls[0] = flight_->calls[signature.call];
    difference.calls[1] = call;
    flight_->disagreements.push_back(std::move(difference));
  }

 public:
  // The groups' last sequence numbers are valid even if the entries were overwritten.
  void Finish() {
    for (const auto& [number, status] : status_) {
      const auto named = numbers_.find(number);
      const uint32_t group = named != numbers_.end() ? named->second : flight_->groups.Id(number);
      if (group == kNoName) continue;
      FlightRank* known = flight_->Find(group, rank_);
      if (known == nullptr) continue;
      known->file = file_;
      known->last_enqueued = std::max(known->last_enqueued, status.enqueued);
      known->last_started = std::max(known->last_started, status.started);
      known->last_completed = std::max(known->last_completed, status.completed);
    }
  }

 private:
  struct Status {
    int64_t enqueued = -1;
    int64_t started = -1;
    int64_t completed = -1;
  };
  uint32_t file_;
  int64_t rank_;
  FlightRecord* flight_;
  bool known_ = false;
  std::string why_;
  std::vector<std::string> path_;
  std::string key_;
  std::map<std::string, Status> status_;
  std::map<std::string, uint32_t> numbers_;
  std::string group_;
  std::string operation_;
  std::string state_;
  std::string sizes_;
  std::string types_;
  std::string frame_name_;
  std::string frame_file_;
  int64_t frame_line_ = 0;
  size_t listed_ranks_ = 0;
  int frames_ = 0;
  int64_t sequence_ = -1;
  int64_t group_number_ = -1;
  bool is_p2p_ = false;
};

}  // namespace

FlightRank* FlightRecord::Find(uint32_t group, int64_t rank) {
  const uint64_t key = static_cast<uint64_t>(group) << 40 ^ static_cast<uint64_t>(rank);
  const auto found = index_.find(key);
  if (found != index_.end()) return &ranks[found->second];
  if (ranks.size() >= kMostRanks) return nullptr;
  index_.emplace(key, static_cast<uint32_t>(ranks.size()));
  ranks.emplace_back();
  ranks.back().group = group;
  ranks.back().rank = rank;
  return &ranks.back();
}

int64_t RankInName(std::string_view name) {
  const size_t slash = name.rfind('/');
  if (slash != std::string_view::npos) name = name.substr(slash + 1);
  for (const std::string_view extension : {".json", ".txt", ".log"}) {
    if (name.ends_with(extension)) name.remove_suffix(extension.size());
  }
  size_t end = name.size();
  while (end > 0 && (name[end - 1] < '0' || name[end - 1] > '9')) --end;
  size_t first = end;
  while (first > 0 && name[first - 1] >= '0' && name[first - 1] <= '9') --first;
  int64_t rank = -1;
  Cursor digits(name.substr(first, end - first));
  return digits.Number(&rank) ? rank : -1;
}

Status ReadFlight(int fd, std::string_view start, uint32_t file, int64_t rank,
                  FlightRecord* flight) {
  Characters characters(fd, start);
  Handler handler(file, rank, flight);
  const bool whole = nlohmann::json::sax_parse(CharacterIterator(&characters), CharacterIterator(),
                                               &handler, nlohmann::json::input_format_t::json);
  if (characters.error() != 0) return IoError(ErrnoText(characters.error()));
  if (characters.too_deep()) {
    return Invalid(Format("the JSON is nested deeper than {} levels", Characters::kDeepest));
  }
  // A truncated dump still counts as far as it goes: jobs are killed while they write.
  if (handler.known()) {
    handler.Finish();
    ++flight->files;
  }
  if (!whole) return Invalid(handler.why());
  if (!handler.known()) {
    return Invalid(
        "JSON, but no dump of PyTorch's flight recorder: it has none of \"entries\", "
        "\"pg_config\" and \"pg_status\"");
  }
  return {};
}

}  // namespace diapason::logs
