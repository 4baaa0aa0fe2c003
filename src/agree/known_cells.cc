#include "agree/known_cells.h"

namespace diapason::agree {

void KnownCells::Put(uint32_t epoch, std::string text) {
  const std::lock_guard lock(mutex_);
  cells_.insert_or_assign(epoch, std::move(text));
}

bool KnownCells::Has(uint32_t epoch) const {
  const std::lock_guard lock(mutex_);
  return cells_.count(epoch) != 0;
}

std::optional<std::string> KnownCells::Take(uint32_t epoch) {
  const std::lock_guard lock(mutex_);
  std::optional<std::string> text;
  const auto found = cells_.find(epoch);
  if (found != cells_.end()) text = std::move(found->second);
  cells_.erase(cells_.begin(), cells_.upper_bound(epoch));
  return text;
}

}  // namespace diapason::agree
