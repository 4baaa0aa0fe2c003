#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agree/store.h"

namespace diapason::plugin {

// The store as the learning thread uses it. After a call has failed, the caller makes no further
// one while `away`, since each may take its whole time limit. Used by the learning thread only.
class BackgroundStore {
 public:
  explicit BackgroundStore(agree::CellStore* cells) : cells_(cells) {}

  agree::CellStore* cells() const { return cells_; }
  bool away(double now) const { return now < away_until_; }
  // Notes whether a call to the store has succeeded, and returns its result.
  template <typename T>
  Result<T> Noted(Result<T> result, double now) {
    if (!result.ok()) away_until_ = now + kAwayPause;
    return result;
  }
  Result<std::optional<std::string>> Read(const std::string& key, double now) {
    return Noted(cells_->Read(key), now);
  }
  Result<std::string> Propose(const std::string& key, const std::string& value, double now) {
    return Noted(cells_->Propose(key, value), now);
  }
  // Takes the cells of these ranks that are there, and removes the ranks from the list. Returns
  // whether none is left.
  template <typename KeyOf, typename Take>
  bool Gather(std::vector<int>* ranks, double now, const KeyOf& key_of, const Take& take) {
    std::erase_if(*ranks, [&](int rank) {
      if (away(now)) return false;
      const auto cell = Read(key_of(rank), now);
      if (!cell.ok() || !cell.value().has_value()) return false;
      take(*cell.value());
      return true;
    });
    return ranks->empty();
  }

 private:
  static constexpr double kAwayPause = 0.25;  // seconds

  agree::CellStore* const cells_;
  double away_until_ = 0;
};

}  // namespace diapason::plugin
