#include "rendezvous/turned_away.h"

#include "base/text.h"

namespace diapason::rendezvous {
namespace {

constexpr std::chrono::seconds kQuiet{10};

}  // namespace

void TurnedAway::Note(const std::string& from, const std::string& why) {
  const uint64_t count = ++count_;
  const auto now = std::chrono::steady_clock::now();
  if (!log_ || now < next_) return;
  next_ = now + kQuiet;
  log_(Format("diapason: {}: a connection from {} was turned away, number {}: {}", who_, from,
              count, why));
}

}  // namespace diapason::rendezvous
