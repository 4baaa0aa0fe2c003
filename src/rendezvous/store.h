#pragma once

#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"

namespace diapason::rendezvous {

// One rank's answer to RendezvousStore::Collect.
struct RankAnswer {
  enum class State : uint8_t {
    kGiven,
    kMissing,  // it is connected, but has not answered
    kLeft,     // it has left the group normally
    kLost,     // its process has ended
  };
  State state = State::kMissing;
  std::string value;
  std::string who;  // "rank 2 (host a, process 123)"; the host if it is known
};

// Small values that all ranks can write and read, and the detection of lost ranks. Ranks are those
// of the whole job.
class RendezvousStore {
 public:
  virtual ~RendezvousStore() = default;
  virtual Status Set(const std::string& key, const std::string& value) = 0;
  // Waits for the key, at most until the deadline.
  virtual Result<std::string> Get(const std::string& key, Deadline deadline) = 0;

  // Every one of `members` sets a value under `key`. Returns the answer of each, in the order of
  // `members`, when all have answered or the deadline has passed; with `until_loss` also as soon as
  // one of them is lost. An error: the store itself cannot be reached.
  virtual Result<std::vector<RankAnswer>> Collect(const std::string& key,
                                                  const std::vector<int>& members,
                                                  const std::string& value, bool until_loss,
                                                  Deadline deadline) = 0;

  // Ranks that have ended without leaving and, if a group is given, those that have given up on it
  // (GiveUp). Cheap: sends nothing, only reads rank 0's notices.
  virtual std::vector<int> Lost(const std::string& group = "") = 0;
  // Tells every rank that this rank has given up on a group.
  virtual void GiveUp(const std::string& group) = 0;

  // Collect for callers that need every answer: the values, or an error that names the ranks
  // without one.
  Result<std::vector<std::string>> Gather(const std::string& key, const std::vector<int>& members,
                                          const std::string& value, Deadline deadline);
};

// "rank 2 (host a, process 123) and rank 5 have not arrived; rank 3 has ended", or "" if all have
// answered.
std::string Missing(const std::vector<RankAnswer>& answers);

}  // namespace diapason::rendezvous
