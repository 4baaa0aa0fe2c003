#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "flight_recorder/record.h"

namespace diapason::flight_recorder {

// The sizes of the tensors of a call, as text and as a number of elements. Tensors and dimensions
// beyond a limit are left out of the text and make the number unknown.
class TensorSizes {
 public:
  void BeginTensor();
  void Dimension(int64_t size);
  void EndTensor();
  const std::string& text() const { return text_; }
  int64_t elements() const;

 private:
  std::string text_;
  int64_t product_ = 1;
  int64_t sum_ = 0;
  bool any_ = false;
  bool unknown_ = false;
  bool first_ = true;
};

// An entry as it stands in the file.
struct RawEntry {
  int64_t record = -1;
  int64_t sequence = -1;
  int64_t p2p_sequence = -1;
  int64_t old_sequence = -1;  // "seq_id" of early versions
  int64_t group_number = -1;  // "pg_id"
  int64_t created_ns = 0;
  std::string group;
  std::string description;
  std::string profiling_name;
  std::string state;
  std::string input_types;
  std::string output_types;
  TensorSizes inputs;
  TensorSizes outputs;
  bool p2p = false;
  // Innermost first. Frames of PyTorch itself are left out if others follow.
  void Frame(std::string_view file, int64_t line, std::string_view function);
  std::string FramesText() const;

 private:
  std::string own_frame_;
  std::string frames_;
  int count_ = 0;
};

// Makes a Dump of the parts of a file, which may come in any order.
class DumpBuilder {
 public:
  DumpBuilder(FlightRecord* record, std::string name);

  void Version(std::string_view version);
  // `ranks` as in the file: "[0, 1, 2]".
  void ConfigRanks(const std::string& group, std::string_view ranks);
  void ConfigRank(const std::string& group, int64_t rank);
  void ConfigDescription(const std::string& group, std::string_view description);
  // One number of "pg_status", by its key in the file.
  void StatusNumber(const std::string& group, std::string_view key, int64_t value);
  // One value of "nccl_comm_state".
  void CommNumber(const std::string& communicator, std::string_view key, int64_t value);
  void Add(const RawEntry& entry);
  // Stores the dump in the record. `rank` is the one in the file's name, -1 for none.
  void Finish(int64_t rank, bool truncated);

 private:
  struct Config {
    std::string description;
    std::vector<int64_t> ranks;
  };
  struct Comm {
    int64_t rank = -1;
    int64_t ranks = -1;
  };
  void ResolveGroups();
  void ResolveStatus();
  int64_t Rank(int64_t named) const;
  void NarrowBySends(std::vector<int64_t>* candidates) const;

  FlightRecord* record_;
  Dump dump_;
  std::map<std::string, Config> config_;
  std::map<std::string, GroupStatus> status_;
  std::map<std::string, Comm> comms_;
  std::vector<std::pair<std::string, std::string>> names_;  // of groups, with descriptions
  std::map<std::string, uint32_t> name_ids_;
  std::map<int64_t, uint32_t> number_names_;  // "pg_id" to names_
  std::vector<uint32_t> name_groups_;         // names_ to groups of the record
  size_t members_ = 0;
  uint64_t seen_ = 0;
};

}  // namespace diapason::flight_recorder
