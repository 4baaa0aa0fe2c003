#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "journal/reader.h"

namespace diapason::journal {

// Matches communicators of different processes: same id, library and shape, and the same number of
// earlier communicators with that id in the process (programs may reuse an id). Ids are 0 before
// tuner API v5; there only the order counts.
class Matcher {
 public:
  struct Member {
    size_t journal = 0;         // in the order they were added
    uint32_t communicator = 0;  // its number there
    int rank = -1;
    std::string label;  // "rank 3", or the journal's name
    std::string host;
    std::string digest;
    bool ended = false;     // its process closed the journal,
    bool complete = false;  // and no records were dropped
  };
  struct Group {
    uint64_t id = 0;
    uint32_t generation = 0;
    Library library = Library::kNccl;
    int library_version = 0;
    Shape shape;
    std::string name;
    std::vector<Member> members;

    // "communicator 0x2a (dp)", "communicator 0x2a, the 2nd".
    std::string Text() const;
  };
  // The group of a journal's communicator.
  struct Place {
    size_t group = 0;
    size_t member = 0;
  };

  // One for each of JournalContents::communicators.
  std::vector<Place> Add(const std::string& name, const JournalContents& contents);
  const std::vector<Group>& groups() const { return groups_; }
  size_t journals() const { return journals_; }

 private:
  using Key = std::tuple<uint64_t, Library, int64_t, int64_t, uint32_t>;
  size_t journals_ = 0;
  std::map<Key, size_t> by_key_;
  std::vector<Group> groups_;
};

// "rank 3", "ranks 0-2, 5".
std::string RanksText(std::vector<int> ranks);
// The same, or the labels if not all ranks are known.
std::string MembersText(const std::vector<const Matcher::Member*>& members);

}  // namespace diapason::journal
