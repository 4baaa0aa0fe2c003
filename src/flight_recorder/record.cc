#include "flight_recorder/record.h"

#include <algorithm>

#include "base/text.h"

namespace diapason::flight_recorder {

std::string Call::Text() const {
  std::string text = operation;
  const std::string& sizes = inputs.empty() ? outputs : inputs;
  const std::string& types = input_types.empty() ? output_types : input_types;
  if (!sizes.empty()) text += " " + sizes;
  if (!types.empty()) text += " " + types;
  return text;
}

std::string Group::Text() const {
  return "group " + name + (description.empty() ? "" : " (" + description + ")");
}

uint32_t TextTable::Id(const std::string& text) {
  const auto found = ids_.find(text);
  if (found != ids_.end()) return found->second;
  if (texts_.size() >= limit_) return kNoIndex;
  const auto id = static_cast<uint32_t>(texts_.size());
  texts_.push_back(text);
  ids_.emplace(text, id);
  return id;
}

const std::string& TextTable::operator[](uint32_t id) const {
  static const std::string none;
  return id < texts_.size() ? texts_[id] : none;
}

uint32_t FlightRecord::GroupId(const std::string& name, const std::string& description,
                               const std::vector<int64_t>& ranks) {
  std::string key = name + '\n';
  for (const int64_t rank : ranks) key += std::to_string(rank) + ' ';
  const auto found = group_ids_.find(key);
  if (found != group_ids_.end()) {
    Group& known = groups[found->second];
    if (known.description.empty()) known.description = description;
    return found->second;
  }
  if (groups.size() >= kMostGroups || members_ + ranks.size() > kMostMembers) return kNoIndex;
  members_ += ranks.size();
  const auto id = static_cast<uint32_t>(groups.size());
  groups.push_back({name, description, ranks});
  group_ids_.emplace(std::move(key), id);
  return id;
}

uint32_t FlightRecord::CallId(const Call& call) {
  std::string key = call.operation + '\n' + call.inputs + '\n' + call.outputs + '\n' +
                    call.input_types + '\n' + call.output_types + '\n' +
                    std::to_string(call.input_elements) + ' ' +
                    std::to_string(call.output_elements);
  const auto found = call_ids_.find(key);
  if (found != call_ids_.end()) return found->second;
  if (calls.size() >= kMostCalls) {
    // The sizes are what differs; the operation alone is known still.
    if (call.inputs.empty() && call.outputs.empty()) return kNoIndex;
    Call plain;
    plain.operation = call.operation;
    return CallId(plain);
  }
  const auto id = static_cast<uint32_t>(calls.size());
  calls.push_back(call);
  call_ids_.emplace(std::move(key), id);
  return id;
}

void FlightRecord::AddDump(Dump dump) {
  std::stable_sort(dump.entries.begin(), dump.entries.end(),
                   [](const Entry& a, const Entry& b) { return a.record < b.record; });
  entries += dump.entries.size();
  const auto known = dump_of_.find(dump.rank);
  if (known != dump_of_.end()) {
    Dump& other = dumps[known->second];
    const size_t grown = kept_ - other.entries.size() + dump.entries.size();
    if (dump.entries.size() > other.entries.size() && grown <= kMostEntries) {
      std::swap(dump, other);
      kept_ = grown;
    }
    if (twice.size() < 64) twice.push_back(dump.name);
    return;
  }
  if (dumps.size() >= kMostDumps || kept_ + dump.entries.size() > kMostEntries) {
    entries_left_out += dump.entries.size();
    // Without them the rank would look as if it were behind.
    dump.entries.clear();
    dump.truncated = true;
    if (dumps.size() >= kMostDumps) return;
  }
  dump.entries.shrink_to_fit();
  kept_ += dump.entries.size();
  dump_of_.emplace(dump.rank, dumps.size());
  dumps.push_back(std::move(dump));
}

const Dump* FlightRecord::Find(int64_t rank) const {
  const auto found = dump_of_.find(rank);
  return found == dump_of_.end() ? nullptr : &dumps[found->second];
}

const std::string& FlightRecord::Operation(const Entry& entry) const {
  static const std::string unknown;
  return entry.call < calls.size() ? calls[entry.call].operation : unknown;
}

std::string FlightRecord::CallText(const Entry& entry) const {
  return entry.call < calls.size() ? calls[entry.call].Text() : "an operation";
}

}  // namespace diapason::flight_recorder
