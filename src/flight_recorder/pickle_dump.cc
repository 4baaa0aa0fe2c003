#include "flight_recorder/pickle_dump.h"

#include <algorithm>

#include "base/text.h"
#include "flight_recorder/dump_builder.h"
#include "flight_recorder/pickle.h"
#include "flight_recorder/read.h"

namespace diapason::flight_recorder {
namespace {

// A pickle may share one large list among all entries: only this many items of each are walked.
constexpr size_t kMostPairs = 64;      // of an entry
constexpr size_t kMostTensors = 4096;  // of a call
constexpr size_t kMostDimensions = 16;
constexpr size_t kMostStackFrames = 64;
constexpr size_t kMostWalkSteps = 64 << 20;  // of the walk over one dump

class Walker {
 public:
  using Kind = PickleValue::Kind;

  Walker(const Pickle& pickle, DumpBuilder* builder) : pickle_(pickle), builder_(builder) {}

  void Walk() {
    for (const auto& [key, value] : pickle_.Pairs(pickle_.root())) {
      const std::string& name = pickle_.Text(key);
      if (name == "version") builder_->Version(pickle_.Text(value));
      if (name == "pg_config") Config(value);
      if (name == "pg_status") Tables(value, &DumpBuilder::StatusNumber);
      if (name == "nccl_comm_state") Tables(value, &DumpBuilder::CommNumber);
      if (name != "entries") continue;
      for (const PickleValue& entry : pickle_.Items(value)) {
        if (entry.kind == Kind::kDict && steps_ < kMostWalkSteps) ReadEntry(entry);
      }
    }
  }

 private:
  // A number, also one that is written as text.
  bool Number(const PickleValue& value, int64_t* number) const {
    if (value.kind == Kind::kText) return ParseSigned(pickle_.Text(value), number);
    if (value.kind != Kind::kInt && value.kind != Kind::kBool) return false;
    *number = value.number;
    return true;
  }
  std::string KeyText(const PickleValue& key) const {
    if (key.kind == Kind::kInt) return std::to_string(key.number);
    return pickle_.Text(key).substr(0, 80);
  }

  void Config(const PickleValue& groups) {
    for (const auto& [key, group] : pickle_.Pairs(groups)) {
      if (++steps_ > kMostWalkSteps) return;
      const std::string name = KeyText(key);
      const PickleValue* description = pickle_.Find(group, "desc");
      if (description != nullptr) builder_->ConfigDescription(name, pickle_.Text(*description));
      const PickleValue* ranks = pickle_.Find(group, "ranks");
      if (ranks == nullptr) continue;
      builder_->ConfigRanks(name, pickle_.Text(*ranks));
      for (const PickleValue& rank : pickle_.Items(*ranks)) {
        int64_t number = -1;
        if (++steps_ > kMostWalkSteps) return;
        if (Number(rank, &number)) builder_->ConfigRank(name, number);
      }
    }
  }

  // A dict of dicts of numbers.
  void Tables(const PickleValue& tables,
              void (DumpBuilder::*take)(const std::string&, std::string_view, int64_t)) {
    for (const auto& [key, table] : pickle_.Pairs(tables)) {
      const std::string name = KeyText(key);
      size_t walked = 0;
      for (const auto& [field, value] : pickle_.Pairs(table)) {
        int64_t number = 0;
        if (++walked > kMostPairs || ++steps_ > kMostWalkSteps) break;
        if (Number(value, &number)) (builder_->*take)(name, pickle_.Text(field), number);
      }
    }
  }

  void ReadEntry(const PickleValue& dict) {
    RawEntry entry;
    size_t walked = 0;
    for (const auto& [key, value] : pickle_.Pairs(dict)) {
      if (++walked > kMostPairs || ++steps_ > kMostWalkSteps) break;
      const std::string& name = pickle_.Text(key);
      int64_t number = 0;
      if (Number(value, &number)) EntryNumber(name, number, &entry);
      if (name == "profiling_name") entry.profiling_name = pickle_.Text(value).substr(0, 120);
      if (name == "state") entry.state = pickle_.Text(value).substr(0, 16);
      if (name == "input_sizes") Sizes(value, &entry.inputs);
      if (name == "output_sizes") Sizes(value, &entry.outputs);
      if (name == "input_dtypes") Types(value, &entry.input_types);
      if (name == "output_dtypes") Types(value, &entry.output_types);
      if (name == "frames") Frames(value, &entry);
      if (name == "process_group" || name == "pg_name") GroupName(value, &entry);
    }
    builder_->Add(entry);
  }

  void GroupName(const PickleValue& value, RawEntry* entry) const {
    const std::vector<PickleValue>& names = pickle_.Items(value);
    entry->group = (names.empty() ? KeyText(value) : KeyText(names[0]));
    if (names.size() > 1) entry->description = KeyText(names[1]);
  }

  static void EntryNumber(std::string_view name, int64_t number, RawEntry* entry) {
    if (name == "record_id" || name == "id") entry->record = number;
    if (name == "collective_seq_id") entry->sequence = number;
    if (name == "p2p_seq_id") entry->p2p_sequence = number;
    if (name == "seq_id") entry->old_sequence = number;
    if (name == "pg_id") entry->group_number = number;
    if (name == "time_created_ns") entry->created_ns = number;
    if (name == "is_p2p") entry->p2p = number != 0;
  }

  void Sizes(const PickleValue& tensors, TensorSizes* sizes) {
    size_t walked = 0;
    for (const PickleValue& tensor : pickle_.Items(tensors)) {
      if (++walked > kMostTensors || ++steps_ > kMostWalkSteps) return;
      if (tensor.kind != Kind::kList) continue;
      sizes->BeginTensor();
      size_t dimensions = 0;
      for (const PickleValue& dimension : pickle_.Items(tensor)) {
        int64_t size = -1;
        if (++dimensions > kMostDimensions || !Number(dimension, &size)) size = -1;
        sizes->Dimension(size);
        if (dimensions > kMostDimensions) break;
      }
      sizes->EndTensor();
    }
  }

  void Types(const PickleValue& types, std::string* text) const {
    for (const PickleValue& type : pickle_.Items(types)) {
      if (text->size() >= 80) return;
      *text += (text->empty() ? "" : ", ") + pickle_.Text(type).substr(0, 32);
    }
  }

  void Frames(const PickleValue& frames, RawEntry* entry) {
    size_t walked = 0;
    for (const PickleValue& frame : pickle_.Items(frames)) {
      if (++walked > kMostStackFrames || ++steps_ > kMostWalkSteps) return;
      const PickleValue* file = pickle_.Find(frame, "filename");
      const PickleValue* function = pickle_.Find(frame, "name");
      const PickleValue* line = pickle_.Find(frame, "line");
      if (file == nullptr || function == nullptr) continue;
      int64_t number = 0;
      if (line != nullptr) Number(*line, &number);
      entry->Frame(pickle_.Text(*file), number, pickle_.Text(*function));
    }
  }

  const Pickle& pickle_;
  DumpBuilder* builder_;
  size_t steps_ = 0;
};

}  // namespace

Status ReadPickleDump(int fd, std::string_view start, const std::string& name,
                      FlightRecord* record) {
  Pickle pickle;
  RETURN_IF_ERROR(pickle.Parse(fd, start));
  const PickleValue& root = pickle.root();
  if (pickle.Find(root, "entries") == nullptr && pickle.Find(root, "pg_config") == nullptr &&
      pickle.Find(root, "pg_status") == nullptr) {
    return Invalid("this is a pickle, but not a dump of PyTorch's flight recorder");
  }
  DumpBuilder builder(record, name);
  Walker(pickle, &builder).Walk();
  builder.Finish(RankInName(name), false);
  return {};
}

}  // namespace diapason::flight_recorder
