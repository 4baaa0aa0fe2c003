#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

namespace diapason::rendezvous {

// Counts the connections that a store has refused, and logs them: the first at once, then at most
// one line in ten seconds, so that they cannot fill a log. One thread adds; any thread may read.
class TurnedAway {
 public:
  // `who`: the server, in the lines. `log` may be empty.
  TurnedAway(std::string who, std::function<void(const std::string&)> log)
      : who_(std::move(who)), log_(std::move(log)) {}
  // `from`: the other end's address.
  void Note(const std::string& from, const std::string& why);
  uint64_t count() const { return count_.load(); }

 private:
  const std::string who_;
  const std::function<void(const std::string&)> log_;
  std::atomic<uint64_t> count_{0};
  std::chrono::steady_clock::time_point next_{};
};

}  // namespace diapason::rendezvous
