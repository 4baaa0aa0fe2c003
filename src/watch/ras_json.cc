#include <algorithm>

#include "base/text.h"
#include "watch/ras_answer.h"

namespace diapason::watch {
namespace {

constexpr size_t kMostDepth = 16;
constexpr size_t kMostString = 256;

// A reader of JSON that takes one value after another and keeps nothing. Commas and colons are
// skipped: NCCL 2.28.7 to 2.28.9 leave one comma out in the description of a missing rank.
class RasJsonReader {
 public:
  explicit RasJsonReader(std::string_view text) : text_(text) {}

  Result<RasAnswer> Read() {
    answer_.json = true;
    while (!closed_) {
      SkipSeparators();
      if (at_ == text_.size()) return Invalid("the answer of RAS ends early");
      RETURN_IF_ERROR(Next());
    }
    SkipSeparators();
    if (at_ != text_.size()) return Invalid("the answer of RAS has text after its end");
    if (!seen_communicators_) return Invalid("the answer of RAS has no list of communicators");
    for (RasCommunicator& communicator : answer_.communicators) {
      for (RasRank& rank : communicator.ranks) {
        if (rank.absence == RasAbsence::kNone) rank.counts.resize(answer_.functions.size(), 0);
      }
      std::stable_sort(communicator.ranks.begin(), communicator.ranks.end(),
                       [](const RasRank& a, const RasRank& b) { return a.rank < b.rank; });
    }
    return std::move(answer_);
  }

 private:
  // What the innermost object or list describes.
  enum class Place : uint8_t {
    kOther,
    kTop,
    kCommunicators,
    kCommunicator,
    kRanks,
    kRank,
    kStatus,
    kCounts,
    kMissingRanks,
    kMissing,
    kMissingStatus,
    kRas,
  };
  struct Frame {
    Place place;
    bool list;
  };

  void SkipSeparators() { at_ = std::min(text_.find_first_not_of(" \t\r\n,:", at_), text_.size()); }

  Status Next() {
    const char c = text_[at_];
    if (c == '{' || c == '[') return Open(c == '[');
    if (c == '}' || c == ']') return Close(c == ']');
    std::string value;
    const bool quoted = c == '"';
    RETURN_IF_ERROR(quoted ? ReadString(&value) : ReadWord(&value));
    if (frames_.empty()) return Invalid("the answer of RAS is no JSON object");
    if (frames_.back().list) return {};
    if (!has_key_) {
      if (!quoted) return Invalid("the answer of RAS has a key without quotes");
      key_ = std::move(value);
      has_key_ = true;
      return {};
    }
    has_key_ = false;
    return Take(value);
  }

  Status ReadString(std::string* value) {
    for (++at_; at_ < text_.size(); ++at_) {
      char c = text_[at_];
      if (c == '"') {
        ++at_;
        return {};
      }
      if (c == '\\') {
        if (++at_ == text_.size()) break;
        c = text_[at_];  // names and addresses contain no other escapes
      }
      if (value->size() < kMostString) value->push_back(c);
    }
    return Invalid("the answer of RAS ends early");
  }

  Status ReadWord(std::string* value) {
    const size_t end = std::min(text_.find_first_of(" \t\r\n,:{}[]\"", at_), text_.size());
    if (end - at_ > kMostString) return Invalid("the answer of RAS has a word that is too long");
    *value = std::string(text_.substr(at_, end - at_));
    at_ = end;
    return {};
  }

  Place PlaceInside(bool list) const {
    if (frames_.empty()) return list ? Place::kOther : Place::kTop;
    switch (frames_.back().place) {
      case Place::kTop:
        if (key_ == "communicators" && list) return Place::kCommunicators;
        return key_ == "ras" && !list ? Place::kRas : Place::kOther;
      case Place::kCommunicators:
        return list ? Place::kOther : Place::kCommunicator;
      case Place::kCommunicator:
        if (key_ == "ranks" && list) return Place::kRanks;
        return key_ == "missing_ranks" && list ? Place::kMissingRanks : Place::kOther;
      case Place::kRanks:
        return list ? Place::kOther : Place::kRank;
      case Place::kMissingRanks:
        return list ? Place::kOther : Place::kMissing;
      case Place::kRank:
        if (key_ == "status" && !list) return Place::kStatus;
        return key_ == "collective_counts" && !list ? Place::kCounts : Place::kOther;
      case Place::kMissing:
        return key_ == "status" && !list ? Place::kMissingStatus : Place::kOther;
      default:
        return Place::kOther;
    }
  }

  Status Open(bool list) {
    if (frames_.size() == kMostDepth) return Invalid("the answer of RAS is nested too deeply");
    if (frames_.empty() && list) return Invalid("the answer of RAS is no JSON object");
    const bool keyed = !frames_.empty() && !frames_.back().list;
    if (keyed && !has_key_) return Invalid("the answer of RAS has an object without a key");
    const Place place = PlaceInside(list);
    has_key_ = false;
    ++at_;
    frames_.push_back({place, list});
    if (place == Place::kCommunicators) seen_communicators_ = true;
    if (place == Place::kCommunicator) {
      if (answer_.communicators.size() == kMostRasCommunicators) {
        return Invalid("the answer of RAS has too many communicators");
      }
      answer_.communicators.emplace_back();
    }
    if (place == Place::kRank || place == Place::kMissing) {
      if (++ranks_ > kMostRasRanks) return Invalid("the answer of RAS has too many ranks");
      answer_.communicators.back().ranks.emplace_back();
      // Without its status a missing rank is one whose process answered.
      if (place == Place::kMissing) Rank().absence = RasAbsence::kLeft;
    }
    return {};
  }

  Status Close(bool list) {
    if (frames_.empty() || frames_.back().list != list || has_key_) {
      return Invalid("the answer of RAS has a bracket that does not match");
    }
    ++at_;
    frames_.pop_back();
    closed_ = frames_.empty();
    return {};
  }

  RasRank& Rank() { return answer_.communicators.back().ranks.back(); }

  static bool Number(const std::string& value, int* number) {
    int64_t parsed = 0;
    if (!ParseSigned(value, &parsed) || parsed < INT32_MIN || parsed > INT32_MAX) return false;
    *number = static_cast<int>(parsed);
    return true;
  }

  Status TakeNumber(const std::string& value, int* number) {
    if (Number(value, number)) return {};
    return Invalid("the answer of RAS has a value of '" + key_ + "' that is no number");
  }

  Status Take(const std::string& value) {
    switch (frames_.back().place) {
      case Place::kTop:
        if (key_ == "nccl_version") answer_.nccl_version = value;
        return {};
      case Place::kCommunicator:
        if (key_ == "hash") answer_.communicators.back().hash = value;
        return key_ == "size" ? TakeNumber(value, &answer_.communicators.back().size) : Status();
      case Place::kRank:
      case Place::kMissing:
        if (key_ == "host" && value != "unknown") Rank().host = value;
        if (key_ == "rank") return TakeNumber(value, &Rank().rank);
        return key_ == "pid" ? TakeNumber(value, &Rank().pid) : Status();
      case Place::kStatus:
        return TakeStatus(value);
      case Place::kMissingStatus:
        if (key_ == "unresponsive" && value == "true" && Rank().absence == RasAbsence::kLeft) {
          Rank().absence = RasAbsence::kUnresponsive;
        }
        if (key_ == "considered_dead" && value == "true") Rank().absence = RasAbsence::kDead;
        return {};
      case Place::kCounts:
        return TakeCount(value);
      case Place::kRas:
        return TakeRas(value);
      default:
        return {};
    }
  }

  Status TakeStatus(const std::string& value) {
    constexpr int kSuccess = 0;
    constexpr int kInProgress = 7;
    if (key_ == "init_state") {
      int state = 0;
      RETURN_IF_ERROR(TakeNumber(value, &state));
      Rank().initialising = state != kSuccess;
    } else if (key_ == "async_error") {
      RETURN_IF_ERROR(TakeNumber(value, &Rank().async_error));
      if (Rank().async_error == kInProgress) Rank().async_error = kSuccess;
    } else if (key_ == "finalize_called" || key_ == "destroy_flag") {
      Rank().ending |= value == "true";
    } else if (key_ == "abort_flag") {
      Rank().aborted = value == "true";
    }
    return {};
  }

  Status TakeCount(const std::string& value) {
    uint64_t count = 0;
    if (!ParseUnsigned(value, &count)) {
      return Invalid("the answer of RAS has a count that is no number");
    }
    const auto known = std::find(answer_.functions.begin(), answer_.functions.end(), key_);
    const auto index = static_cast<size_t>(known - answer_.functions.begin());
    if (known == answer_.functions.end()) {
      if (answer_.functions.size() == kMostRasFunctions) return {};
      answer_.functions.push_back(key_);
    }
    if (Rank().counts.size() <= index) Rank().counts.resize(index + 1, 0);
    Rank().counts[index] = count;
    return {};
  }

  Status TakeRas(const std::string& value) {
    if (key_ == "timeouts_count") return TakeNumber(value, &answer_.timeouts);
    // "0.123": whole and thousandths.
    uint64_t whole = 0;
    uint64_t thousandths = 0;
    const size_t dot = value.find('.');
    if (key_ == "collection_time_sec" && dot != std::string::npos && value.size() == dot + 4 &&
        ParseUnsigned(value.substr(0, dot), &whole) &&
        ParseUnsigned(value.substr(dot + 1), &thousandths)) {
      answer_.collection_s = static_cast<double>(whole) + 1e-3 * static_cast<double>(thousandths);
    }
    return {};
  }

  const std::string_view text_;
  size_t at_ = 0;
  std::vector<Frame> frames_;
  std::string key_;
  bool has_key_ = false;
  bool closed_ = false;
  bool seen_communicators_ = false;
  size_t ranks_ = 0;
  RasAnswer answer_;
};

}  // namespace

Result<RasAnswer> ParseRasJson(std::string_view text) {
  if (text.size() > kMostRasBytes) return Invalid("the answer of RAS is too long");
  return RasJsonReader(text).Read();
}

Result<RasAnswer> ParseRasAnswer(std::string_view text) {
  const size_t start = text.find_first_not_of(" \t\r\n");
  if (start != std::string_view::npos && text[start] == '{') return ParseRasJson(text);
  return ParseRasText(text);
}

}  // namespace diapason::watch
