#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace diapason::logs {

inline constexpr uint32_t kNoName = UINT32_MAX;

// Distinct texts, each stored once and identified by a number; at most `limit`.
class Names {
 public:
  explicit Names(size_t limit) : limit_(limit) {}

  // The number of `text`, new or existing; kNoName if the table is full.
  uint32_t Id(std::string_view text) {
    text = text.substr(0, kLongest);
    const uint32_t known = Find(text);
    if (known != kNoName) return known;
    if (texts_.size() >= limit_) {
      ++refused_;
      return kNoName;
    }
    const auto id = static_cast<uint32_t>(texts_.size());
    texts_.emplace_back(text);
    ids_.emplace(texts_.back(), id);
    return id;
  }
  uint32_t Find(std::string_view text) const {
    const auto found = ids_.find(std::string(text.substr(0, kLongest)));
    return found == ids_.end() ? kNoName : found->second;
  }
  // "?" for kNoName.
  const std::string& operator[](uint32_t id) const {
    static const std::string unknown = "?";
    return id < texts_.size() ? texts_[id] : unknown;
  }
  size_t size() const { return texts_.size(); }
  uint64_t refused() const { return refused_; }  // counts repeated texts, too

 private:
  static constexpr size_t kLongest = 200;
  size_t limit_;
  std::vector<std::string> texts_;
  std::unordered_map<std::string, uint32_t> ids_;
  uint64_t refused_ = 0;
};

}  // namespace diapason::logs
