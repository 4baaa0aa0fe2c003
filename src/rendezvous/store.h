#pragma once

#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"

namespace diapason::rendezvous {

// What one rank has answered to Store::Collect.
struct RankAnswer {
  enum class State : uint8_t {
    kGiven,
    kMissing,  // it is there, but has not answered
    kLeft,     // it has left the group in good order
    kLost,     // its process has ended
  };
  State state = State::kMissing;
  std::string value;
  std::string who;  // "rank 2 (host a, process 123)"; the host where it is known
};

// Small values that all ranks can write and read, and knowledge of who is still there. Ranks are
// those of the whole job.
class RendezvousStore {
 public:
  virtual ~RendezvousStore() = default;
  virtual Status Set(const std::string& key, const std::string& value) = 0;
  // Waits for the key, at most to the deadline.
  virtual Result<std::string> Get(const std::string& key, Deadline deadline) = 0;

  // Every one of `members` gives a value under `key`. Returns what each has given, in the order of
  // `members`, when nobody is missing any more or the deadline has passed; with `until_loss` also
  // as soon as one of them is gone. An error: the store itself cannot be reached.
  virtual Result<std::vector<RankAnswer>> Collect(const std::string& key,
                                                  const std::vector<int>& members,
                                                  const std::string& value, bool until_loss,
                                                  Deadline deadline) = 0;

  // Ranks that have ended without saying goodbye and, where a group is named, those that have given
  // up on it (GiveUp). Cheap: nothing is asked, only read what rank 0 has sent by itself.
  virtual std::vector<int> Lost(const std::string& group = "") = 0;
  // Tells every rank that this one has given up on a group.
  virtual void GiveUp(const std::string& group) = 0;

  // Collect that insists: the values, or an error that names the ranks that have none.
  Result<std::vector<std::string>> Gather(const std::string& key, const std::vector<int>& members,
                                          const std::string& value, Deadline deadline);
};

// "rank 2 (host a, process 123) and rank 5 have not arrived; rank 3 has ended", or "" when every
// answer was given.
std::string Missing(const std::vector<RankAnswer>& answers);

}  // namespace diapason::rendezvous
