#include "flight_recorder/json_dump.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/text.h"
#include "flight_recorder/dump_builder.h"
#include "flight_recorder/json_input.h"
#include "flight_recorder/read.h"

namespace diapason::flight_recorder {
namespace {

// Tracks the position in the document and the values of the current entry.
class Handler : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit Handler(DumpBuilder* builder) : builder_(builder) {}

  bool known() const { return known_; }
  const std::string& why() const { return why_; }

  bool null() override { return true; }
  bool boolean(bool value) override {
    if (InEntry() && key_ == "is_p2p") entry_.p2p = value;
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
    // The recorder writes numbers of the status as text.
    if (path_.size() == 3 && path_[0] != "entries" && ParseSigned(value, &number)) {
      return Number(number);
    }
    if (path_.size() == 1 && key_ == "version") builder_->Version(value);
    if (InGroup()) {
      if (key_ == "desc") builder_->ConfigDescription(path_[2], value);
      if (key_ == "ranks") builder_->ConfigRanks(path_[2], value);
    }
    if (InEntry()) {
      if (key_ == "profiling_name") entry_.profiling_name = value.substr(0, 120);
      if (key_ == "state") entry_.state = value.substr(0, 16);
      if (key_ == "process_group" || key_ == "pg_name") entry_.group = value.substr(0, 80);
    }
    if (InEntryList("process_group")) {
      if (names_++ == 0) entry_.group = value.substr(0, 80);
      if (names_ == 2) entry_.description = value.substr(0, 80);
    }
    if (InEntryList("input_dtypes")) AppendType(&entry_.input_types, value);
    if (InEntryList("output_dtypes")) AppendType(&entry_.output_types, value);
    if (InFrame()) {
      if (key_ == "name") frame_name_ = value.substr(0, 80);
      if (key_ == "filename") frame_file_ = value.substr(0, 160);
    }
    return true;
  }

  bool start_object(std::size_t) override {
    if (path_.size() == 2 && path_[0] == "entries") {
      entry_ = RawEntry();
      names_ = 0;
    }
    if (path_.size() == 4 && path_[3] == "frames") {
      frame_name_.clear();
      frame_file_.clear();
      frame_line_ = 0;
    }
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
    if (InFrame()) entry_.Frame(frame_file_, frame_line_, frame_name_);
    Pop();
    if (path_.size() == 2 && path_[0] == "entries") builder_->Add(entry_);
    return true;
  }
  bool start_array(std::size_t) override {
    if (InEntryList("input_sizes")) entry_.inputs.BeginTensor();
    if (InEntryList("output_sizes")) entry_.outputs.BeginTensor();
    return Push();
  }
  bool end_array() override {
    Pop();
    if (InEntryList("input_sizes")) entry_.inputs.EndTensor();
    if (InEntryList("output_sizes")) entry_.outputs.EndTensor();
    return true;
  }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception&) override {
    why_ = Format("the JSON breaks off or is wrong at byte {}", position);
    return false;
  }

 private:
  bool InEntry() const { return path_.size() == 3 && path_[0] == "entries"; }
  bool InEntryList(std::string_view name) const {
    return path_.size() == 4 && path_[0] == "entries" && path_[3] == name;
  }
  bool InGroup() const { return path_.size() == 3 && path_[0] == "pg_config"; }
  bool InFrame() const {
    return path_.size() == 5 && path_[0] == "entries" && path_[3] == "frames";
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
  static void AppendType(std::string* types, std::string_view type) {
    if (types->size() < 80)
      *types += (types->empty() ? "" : ", ") + std::string(type.substr(0, 32));
  }

  bool Number(int64_t value) {
    if (InEntry()) EntryNumber(value);
    if (path_.size() == 5 && path_[0] == "entries") {
      if (path_[3] == "input_sizes") entry_.inputs.Dimension(value);
      if (path_[3] == "output_sizes") entry_.outputs.Dimension(value);
      if (path_[3] == "frames" && key_ == "line") frame_line_ = value;
    }
    if (path_.size() == 3 && path_[0] == "pg_status") {
      builder_->StatusNumber(path_[2], key_, value);
    }
    if (path_.size() == 3 && path_[0] == "nccl_comm_state") {
      builder_->CommNumber(path_[2], key_, value);
    }
    if (path_.size() == 4 && path_[0] == "pg_config" && path_[3] == "ranks") {
      builder_->ConfigRank(path_[2], value);
    }
    return true;
  }

  void EntryNumber(int64_t value) {
    if (key_ == "record_id" || key_ == "id") entry_.record = value;
    if (key_ == "collective_seq_id") entry_.sequence = value;
    if (key_ == "p2p_seq_id") entry_.p2p_sequence = value;
    if (key_ == "seq_id") entry_.old_sequence = value;
    if (key_ == "pg_id") entry_.group_number = value;
    if (key_ == "time_created_ns") entry_.created_ns = value;
  }

  DumpBuilder* builder_;
  bool known_ = false;
  std::string why_;
  std::vector<std::string> path_;
  std::string key_;
  RawEntry entry_;
  int names_ = 0;  // texts seen in "process_group"
  std::string frame_name_;
  std::string frame_file_;
  int64_t frame_line_ = 0;
};

}  // namespace

Status ReadJsonDump(int fd, std::string_view start, const std::string& name, FlightRecord* record) {
  Characters characters(fd, start);
  DumpBuilder builder(record, name);
  Handler handler(&builder);
  const bool whole = nlohmann::json::sax_parse(CharacterIterator(&characters), CharacterIterator(),
                                               &handler, nlohmann::json::input_format_t::json);
  if (characters.error() != 0) return IoError(ErrnoText(characters.error()));
  Status status;
  if (characters.too_deep()) {
    status = Invalid(Format("the JSON is nested deeper than {} levels", Characters::kDeepest));
  } else if (!whole) {
    status = Invalid(handler.why().empty() ? "the JSON is wrong" : handler.why());
  } else if (!handler.known()) {
    status = Invalid("this is JSON, but not a dump of the flight recorder");
  }
  if (handler.known()) builder.Finish(RankInName(name), !status.ok());
  return status;
}

}  // namespace diapason::flight_recorder
