#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"
#include "watch/ras_answer.h"

namespace diapason::watch {
namespace {

constexpr int kMostRanksOfOne = 65536;

// Takes `prefix` off the front of a line.
bool Skip(std::string_view prefix, std::string_view* line) {
  if (!line->starts_with(prefix)) return false;
  line->remove_prefix(prefix.size());
  return true;
}

// Takes a number off the front of a line.
bool TakeNumber(std::string_view* line, uint64_t* number) {
  const size_t end = std::min(line->find_first_not_of("0123456789"), line->size());
  if (!ParseUnsigned(line->substr(0, end), number)) return false;
  line->remove_prefix(end);
  return true;
}

std::vector<std::string_view> Words(std::string_view line) {
  std::vector<std::string_view> words;
  while (!line.empty() && words.size() < 16) {
    const size_t start = line.find_first_not_of(' ');
    if (start == std::string_view::npos) break;
    line.remove_prefix(start);
    const size_t end = std::min(line.find(' '), line.size());
    words.push_back(line.substr(0, end));
    line.remove_prefix(end);
  }
  return words;
}

// "... managed by process 123 on node 10.0.0.1", at the end of a line about a rank.
void TakeProcess(std::string_view line, RasRank* rank) {
  static constexpr std::string_view kProcess = " managed by process ";
  const size_t at = line.find(kProcess);
  if (at == std::string_view::npos) return;
  line.remove_prefix(at + kProcess.size());
  uint64_t pid = 0;
  if (!TakeNumber(&line, &pid) || pid > INT32_MAX || !Skip(" on node ", &line)) return;
  rank->pid = static_cast<int>(pid);
  rank->host = std::string(line.substr(0, 64));
}

// NCCL's text names the ranks of small groups; of the largest group it gives the number only.
class RasTextReader {
 public:
  Result<RasAnswer> Read(std::string_view text) {
    while (!text.empty()) {
      const size_t end = text.find('\n');
      std::string_view line = text.substr(0, end);
      text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
      if (line.ends_with('\r')) line.remove_suffix(1);
      RETURN_IF_ERROR(Take(line));
    }
    if (!version_) return Invalid("the answer is not one of NCCL's RAS");
    if (!warnings_) return Invalid("the answer of RAS ends early");
    RETURN_IF_ERROR(FinishFunction());
    for (auto& [place, described] : communicators_) {
      for (auto& [number, rank] : described.ranks) {
        MarkDead(&rank);
        described.communicator.ranks.push_back(std::move(rank));
      }
      answer_.communicators.push_back(std::move(described.communicator));
    }
    return std::move(answer_);
  }

 private:
  enum class Section : uint8_t {
    kNone,
    kGroups,
    kProcesses,
    kDead,
    kIncomplete,
    kError,
    kMismatch
  };
  enum class List : uint8_t { kNone, kStatus, kCounts };
  struct Described {
    RasCommunicator communicator;
    std::map<int, RasRank> ranks;
    uint32_t functions = 0;  // a bit for each whose counts are listed
  };

  Status Take(std::string_view line) {
    if (std::string_view rest = line; Skip("NCCL version ", &rest)) {
      version_ = true;
      answer_.nccl_version = std::string(rest.substr(0, rest.find(' ')).substr(0, 64));
      return {};
    }
    if (line.starts_with("Group ")) {
      section_ = Section::kGroups;
    } else if (line == "Errors" || line == "Warnings") {
      warnings_ |= line == "Warnings";
      return Enter(Section::kNone);
    } else if (line == "INCOMPLETE") {
      return Enter(Section::kProcesses);
    } else if (line == "DEAD") {
      return Enter(Section::kDead);
    } else if (line.starts_with("#")) {
      return TakeHeading(line.substr(1));
    } else if (line.starts_with("  ") || section_ == Section::kGroups) {
      return TakeDetail(line);
    }
    return {};
  }

  Status Enter(Section section) {
    RETURN_IF_ERROR(FinishFunction());
    section_ = section;
    communicator_ = nullptr;
    return {};
  }

  // A row of the table of communicators: group, communicators, nodes, ranks of a node, ranks of a
  // communicator, ranks of the group, status, errors.
  Status TakeGroup(std::string_view line) {
    const std::vector<std::string_view> words = Words(line);
    uint64_t group = 0;
    uint64_t communicators = 0;
    uint64_t size = 0;
    if (words.size() != 8 || !ParseUnsigned(words[0], &group) ||
        !ParseUnsigned(words[1], &communicators) || !ParseUnsigned(words[4], &size)) {
      return {};
    }
    if (size > kMostRanksOfOne || communicators > kMostRasCommunicators ||
        communicators_.size() + communicators > kMostRasCommunicators) {
      return Invalid("the answer of RAS has too many ranks or communicators");
    }
    for (uint64_t i = 0; i < communicators; ++i) {
      communicators_[{group, i}].communicator.size = static_cast<int>(size);
    }
    return {};
  }

  // "0-1 (00000000deadbeef) MISMATCH"
  Status TakeHeading(std::string_view line) {
    RETURN_IF_ERROR(Enter(Section::kNone));
    std::pair<uint64_t, uint64_t> place;
    if (!TakeNumber(&line, &place.first) || !Skip("-", &line) ||
        !TakeNumber(&line, &place.second) || !Skip(" (", &line)) {
      return {};
    }
    const size_t end = line.find(')');
    if (end == std::string_view::npos || end > 32) return {};
    std::string_view hash = line.substr(0, end);
    hash.remove_prefix(std::min(hash.find_first_not_of('0'), hash.size()));
    const auto found = communicators_.find(place);
    if (found == communicators_.end()) return {};
    communicator_ = &found->second;
    communicator_->communicator.hash = "0x" + std::string(hash);
    line.remove_prefix(end + 1);
    if (line == " INCOMPLETE") section_ = Section::kIncomplete;
    if (line == " ERROR") section_ = Section::kError;
    if (line == " MISMATCH") section_ = Section::kMismatch;
    return {};
  }

  Status TakeDetail(std::string_view line) {
    if (section_ == Section::kGroups) return TakeGroup(line);
    line.remove_prefix(2);
    if (section_ == Section::kDead) {
      std::string_view rest = line;
      uint64_t pid = 0;
      if (Skip("Process ", &rest) && TakeNumber(&rest, &pid) && Skip(" on node ", &rest) &&
          dead_.size() < kMostRasRanks) {
        dead_.emplace(std::string(rest.substr(0, std::min<size_t>(rest.find(' '), 64))), pid);
      }
      return {};
    }
    if (communicator_ == nullptr) return {};
    if (line.starts_with("Communicator ranks have different ")) {
      RETURN_IF_ERROR(FinishFunction());
      std::string_view rest = line.substr(sizeof("Communicator ranks have different ") - 1);
      list_ = rest == "status" ? List::kStatus : List::kCounts;
      if (list_ == List::kCounts) StartFunction(rest.substr(0, rest.find(' ')));
      return {};
    }
    if (std::string_view rest = line; Skip("Rank ", &rest)) return TakeRank(rest);
    return TakeTotal(line);
  }

  // "3 ranks have launched up to operation 118", "2 ranks have status RUNNING".
  Status TakeTotal(std::string_view line) {
    uint64_t ranks = 0;
    if (!TakeNumber(&line, &ranks)) return {};
    if (list_ == List::kStatus && Skip(" ranks have status ", &line)) status_ = line;
    if (list_ != List::kCounts) return {};
    if (Skip(" ranks have launched up to operation ", &line)) {
      count_ = kUnknownCount;
      if (!TakeNumber(&line, &count_)) return {};
    } else if (line == " ranks have not launched any operations") {
      count_ = 0;
    } else {
      return {};
    }
    if (groups_.size() < kMostRanksOfOne) groups_.push_back({count_, 0});
    return {};
  }

  // "2 has launched up to operation 117 -- GPU 0 managed by process 123 on node 10.0.0.1"
  Status TakeRank(std::string_view line) {
    uint64_t number = 0;
    if (!TakeNumber(&line, &number) || number >= kMostRanksOfOne) return {};
    RasRank* rank = nullptr;
    RETURN_IF_ERROR(RankOf(static_cast<int>(number), &rank));
    TakeProcess(line, rank);
    if (section_ == Section::kIncomplete) {
      rank->absence = RasAbsence::kUnresponsive;
    } else if (section_ == Section::kError) {
      rank->async_error = 1;
    } else if (list_ == List::kStatus) {
      if (Skip(" has status ", &line)) status_ = line.substr(0, line.find(' '));
      if (status_ == "NOCOMM") rank->absence = RasAbsence::kLeft;
      rank->initialising |= status_ == "INIT";
      rank->ending |= status_ == "FINALIZE";
      rank->aborted |= status_ == "ABORT";
    } else if (list_ == List::kCounts) {
      if (line.starts_with(" -- ")) {
        if (!groups_.empty()) ++groups_.back().named;
      } else {
        count_ = 0;
        if (Skip(" has launched up to operation ", &line) && !TakeNumber(&line, &count_)) return {};
      }
      SetCount(rank, count_);
      named_.insert(rank->rank);
    }
    return {};
  }

  Status RankOf(int number, RasRank** rank) {
    const auto [place, added] = communicator_->ranks.try_emplace(number);
    if (added && ++ranks_ > kMostRasRanks) return Invalid("the answer of RAS has too many ranks");
    place->second.rank = number;
    *rank = &place->second;
    return {};
  }

  void StartFunction(std::string_view name) {
    const auto known = std::find(answer_.functions.begin(), answer_.functions.end(), name);
    function_ = static_cast<size_t>(known - answer_.functions.begin());
    if (known == answer_.functions.end()) {
      if (answer_.functions.size() == kMostRasFunctions) {
        list_ = List::kNone;
        return;
      }
      answer_.functions.emplace_back(name.substr(0, 64));
    }
    // NCCL lists a function once.
    if ((communicator_->functions >> function_ & 1U) != 0) list_ = List::kNone;
    communicator_->functions |= 1U << function_;
  }

  void SetCount(RasRank* rank, uint64_t count) const {
    if (rank->counts.size() <= function_) rank->counts.resize(function_ + 1, kUnknownCount);
    rank->counts[function_] = count;
  }

  // The ranks that no line names have the count of the one group without names.
  Status FinishFunction() {
    if (communicator_ != nullptr && list_ == List::kCounts) {
      std::erase_if(groups_, [](const Unnamed& group) { return group.named > 0; });
      const int size = communicator_->communicator.size;
      for (int number = 0; groups_.size() == 1 && number < size; ++number) {
        if (named_.contains(number)) continue;
        RasRank* rank = nullptr;
        RETURN_IF_ERROR(RankOf(number, &rank));
        if (rank->absence == RasAbsence::kNone) SetCount(rank, groups_[0].count);
      }
    }
    groups_.clear();
    named_.clear();
    list_ = List::kNone;
    return {};
  }

  void MarkDead(RasRank* rank) const {
    if (rank->absence == RasAbsence::kUnresponsive && rank->pid >= 0 &&
        dead_.contains({rank->host, static_cast<uint64_t>(rank->pid)})) {
      rank->absence = RasAbsence::kDead;
    }
  }

  struct Unnamed {
    uint64_t count;
    uint64_t named;  // ranks listed below it
  };

  RasAnswer answer_;
  std::map<std::pair<uint64_t, uint64_t>, Described> communicators_;
  std::set<std::pair<std::string, uint64_t>> dead_;
  bool version_ = false;
  bool warnings_ = false;
  size_t ranks_ = 0;
  Section section_ = Section::kNone;
  List list_ = List::kNone;
  Described* communicator_ = nullptr;
  std::string_view status_;
  size_t function_ = 0;
  uint64_t count_ = 0;
  std::vector<Unnamed> groups_;
  std::set<int> named_;
};

}  // namespace

Result<RasAnswer> ParseRasText(std::string_view text) {
  if (text.size() > kMostRasBytes) return Invalid("the answer of RAS is too long");
  return RasTextReader().Read(text);
}

}  // namespace diapason::watch
