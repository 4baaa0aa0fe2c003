// Cells of generation g of a communicator: "j<id>.<g>.<rank>" is a rank's slot, "j<id>.<g>.mode"
// the decision for all ranks. Texts that many communicators share are cells of their own, named by
// their digest: "a<digest>" for what must be alike, "p<digest>" for an offer. The cells of a
// generation do not have the prefix of the communicator's own cells: a rank that forgets those
// leaves these, and a later communicator with the same id still sees that g is used.
//
// The mode is one of
//   go:<digest>   every slot was registered, and all were alike; the offer's digest;
//   off:<why>     a rank waited too long, or two ranks differ;
//   alone:<why>   the same, if the ranks that have joined do not depend on the others;
//   next:<why>    a slot was taken by a process outside this communicator, perhaps before a crash:
//   no
//                 rank goes ahead in this generation, and all go on to the next.
//
// A slot may have been registered by a process that no longer exists. So rank 0 begins, with a
// random nonce in its slot; the other ranks echo that nonce in theirs, and only rank 0, which knows
// its own nonce, proposes "go". A rank accepts "go" in a generation only if its own registration
// stands there; as slots are written once, rank 0 has then seen exactly this registration, and the
// same holds for every rank. (Two concurrent runs with the same store, the same job name and the
// same communicator id cannot be distinguished: the job name must separate them.)
#include "agree/join.h"

#include <algorithm>
#include <thread>
#include <vector>

#include "agree/patient_store.h"
#include "agree/private_folder.h"
#include "base/encoding.h"
#include "base/text.h"

namespace diapason::agree {
namespace {

using std::chrono::microseconds;
using std::chrono::steady_clock;

constexpr int kMostGenerations = 100000;
// Limit on generations given up while this rank waits, in case two jobs with the same name compete.
constexpr int kMostGivenUp = 16;
constexpr size_t kMostNamed = 4;
constexpr int kSlotsAtOnce = 512;
constexpr size_t kLongestWord = 60;
constexpr microseconds kLeaderPause(20000);
constexpr int kMostRanks = 1 << 20;
// Above it no rank registers: the rest is reserved for communicators that have agreed.
constexpr double kFullStore = 0.9;

struct Mode {
  enum class Kind { kGo, kOff, kAlone, kNext } kind = Kind::kOff;
  std::string text;
};

Result<Mode> ParseMode(const std::string& value) {
  const size_t colon = value.find(':');
  const std::string word = value.substr(0, colon);
  constexpr std::pair<std::string_view, Mode::Kind> kWords[] = {{"go", Mode::Kind::kGo},
                                                                {"off", Mode::Kind::kOff},
                                                                {"alone", Mode::Kind::kAlone},
                                                                {"next", Mode::Kind::kNext}};
  for (const auto& [known, kind] : kWords) {
    if (colon != std::string::npos && word == known) return Mode{kind, value.substr(colon + 1)};
  }
  return Unavailable("what stands for all was written by no rank: '" +
                     value.substr(0, kLongestWord) + "'");
}

// The first word in which two ranks differ.
std::string Difference(const std::string& a, int rank_a, const std::string& b, int rank_b) {
  const std::vector<std::string_view> ours = Split(a, ' ');
  const std::vector<std::string_view> theirs = Split(b, ' ');
  for (size_t i = 0; i < std::max(ours.size(), theirs.size()); ++i) {
    const std::string_view mine = i < ours.size() ? ours[i] : "nothing";
    const std::string_view other = i < theirs.size() ? theirs[i] : "nothing";
    if (mine == other) continue;
    return Format("rank {} has {}, rank {} has {}", rank_a,
                  std::string(mine.substr(0, kLongestWord)), rank_b,
                  std::string(other.substr(0, kLongestWord)));
  }
  return Format("rank {} and rank {} differ", rank_a, rank_b);
}

std::string Digest(const std::string& text) {
  return Format("{:016x}.{:x}", Fnv1a64(text), text.size());
}

class Joining {
 public:
  Joining(CellStore* store, const JoinRequest& request, JoinProgress* progress)
      : patient_(store, request.patience, request.say),
        store_(&patient_),
        request_(request),
        progress_(progress),
        alike_(Format("ranks={} ", request.ranks) + request.alike),
        digest_(Digest(alike_)),
        word_(RandomName()),
        deadline_(steady_clock::now() + request.limit),
        first_pause_(
            std::clamp(microseconds(10) * request.ranks, microseconds(200), microseconds(50000))),
        most_pause_(std::clamp(microseconds(200) * request.ranks, microseconds(5000),
                               microseconds(1000000))) {}

  Result<JoinOutcome> Run() {
    if (const Status shared = ShareTexts(); !shared.ok()) return Absent(shared.message());
    Result<JoinOutcome> outcome = Generations();
    if (outcome.ok() || progress_->committed) return outcome;
    // No generation has this rank's registration, so none can have gone ahead.
    return Absent(outcome.status().message());
  }

 private:
  // Runs before registering, so a full or failing store is not an error here.
  Status ShareTexts() {
    if (store_->Fullness() > kFullStore) {
      return Unavailable(Format("{} is nearly full", store_->Describe()));
    }
    RETURN_IF_ERROR(store_->Propose("a" + digest_, alike_));
    if (request_.rank > 0) return {};  // only rank 0's offer can be chosen
    const Result<std::string> offer = store_->Propose("p" + Digest(request_.offer), request_.offer);
    return offer.ok() ? Status() : offer.status();
  }

  Result<JoinOutcome> Generations() {
    int given_up = 0;
    for (int generation = 0; generation < kMostGenerations; ++generation) {
      id_ = Format("{:x}.{}.", request_.comm_id, generation);
      registered_ = false;
      rank_ = request_.rank;
      // This rank cannot be missing from a generation that was given up, or that another
      // communicator has used.
      SetCommitted(false);
      seen_ = 1;
      difference_.clear();
      ASSIGN_OR_RETURN(std::optional<Mode> before, ReadMode());
      const bool came_late = before.has_value();
      ASSIGN_OR_RETURN(Mode mode, came_late ? Result<Mode>(*before) : Meet());
      if (mode.kind == Mode::Kind::kNext) {
        given_up += came_late ? 0 : 1;
        if (given_up > kMostGivenUp) return Absent(mode.text);
        continue;
      }
      if (!registered_) {
        // Decided without this rank: by an earlier communicator with this id, if the slot is taken.
        // A rank without a number cannot tell, and waits in the next generation.
        if (rank_ == kUnknownRank) continue;
        ASSIGN_OR_RETURN(const std::optional<std::string> slot, store_->Read(SlotKey(rank_)));
        if (slot) continue;
        if (mode.kind == Mode::Kind::kGo) {
          SetCommitted(true);  // the others have gone ahead with a rank of this number
          return Unavailable(Format("{}: rank {} is said to have registered, and has not",
                                    store_->Describe(), rank_));
        }
        // Taking the slot makes the next communicator with this id skip the generation.
        RETURN_IF_ERROR(store_->Propose(SlotKey(rank_), "late"));
      }
      if (mode.kind == Mode::Kind::kGo) return Together(mode.text);
      SetCommitted(false);
      JoinOutcome apart = Apart(mode.text);
      apart.alone = mode.kind == Mode::Kind::kAlone;
      return apart;
    }
    return Absent("there were too many communicators with this id in this store");
  }

  // Records whether the others may go ahead with this rank.
  void SetCommitted(bool committed) { progress_->committed = committed; }

  std::string SlotKey(int rank) const { return "j" + id_ + Format("{}", rank); }
  std::string ModeKey() const { return "j" + id_ + "mode"; }

  Result<JoinOutcome> Together(const std::string& digest) {
    if (!CheckKey("p" + digest).ok()) return Unavailable("the agreed offer has no digest");
    ASSIGN_OR_RETURN(std::optional<std::string> offer, store_->Read("p" + digest));
    if (!offer || Digest(*offer) != digest) {
      return Unavailable("the agreed offer is not in " + store_->Describe());
    }
    JoinOutcome outcome;
    outcome.together = true;
    outcome.offer = *std::move(offer);
    outcome.prefix = "c" + id_;
    return outcome;
  }
  JoinOutcome Apart(const std::string& why) const {
    JoinOutcome outcome;
    outcome.why_not = why.empty() ? "no reason was given" : why;
    outcome.prefix = "c" + id_;
    return outcome;
  }

  // This rank does not register, and does what the others do without it.
  JoinOutcome Absent(const std::string& why) const {
    JoinOutcome outcome = Apart(why);
    outcome.alone = request_.missing == JoinRequest::Missing::kGoAlone;
    return outcome;
  }

  Result<std::optional<Mode>> ReadMode() {
    ASSIGN_OR_RETURN(const std::optional<std::string> value, store_->Read(ModeKey()));
    if (!value) return std::optional<Mode>();
    ASSIGN_OR_RETURN(Mode mode, ParseMode(*value));
    return std::optional<Mode>(std::move(mode));
  }

  Result<Mode> ProposeMode(const std::string& value) {
    ASSIGN_OR_RETURN(const std::string stands, store_->Propose(ModeKey(), value));
    return ParseMode(stands);
  }

  Result<Mode> GiveUp(int rank) {
    return ProposeMode(
        Format("next:another process has registered as rank {} of this communicator; are several "
               "jobs or runs using one store under one name? (set DIAPASON_JOB)",
               rank));
  }

  // The decision of this generation; registers this rank if there is time.
  Result<Mode> Meet() {
    // Random, so that many ranks do not ask together. Rank 0 alone reads slots, for all others: it
    // waits no longer than a small job does.
    microseconds pause = first_pause_;
    const microseconds most =
        request_.rank == 0 ? std::min(most_pause_, kLeaderPause) : most_pause_;
    while (true) {
      if (!registered_) {
        ASSIGN_OR_RETURN(const bool mine, Register());
        if (!mine) return GiveUp(std::max(rank_, 0));
      }
      if (registered_ && rank_ == 0) {
        ASSIGN_OR_RETURN(const std::optional<Mode> mode, LookAround());
        if (mode) return *mode;
      }
      ASSIGN_OR_RETURN(const std::optional<Mode> mode, ReadMode());
      if (mode) return *mode;
      const auto left = deadline_ - steady_clock::now();
      if (left <= left.zero()) {
        ASSIGN_OR_RETURN(const std::string missing, Missing());
        const bool off = request_.missing == JoinRequest::Missing::kStayOff;
        return ProposeMode((off ? "off:" : "alone:") + missing);
      }
      const microseconds jittered =
          pause / 2 + microseconds(RandomWord() % static_cast<uint64_t>(pause.count() + 1));
      std::this_thread::sleep_for(std::min<steady_clock::duration>(jittered, left));
      pause = std::min(pause * 2, most);
    }
  }

  // False: no slot is available to this rank. True and not registered: rank 0 has not joined yet.
  Result<bool> Register() {
    if (request_.rank != kUnknownRank) return TakeSlot(request_.rank);
    for (int rank = 0; rank < request_.ranks; ++rank) {
      const Result<bool> mine = TakeSlot(rank);
      if (!mine.ok() || mine.value()) {
        if (mine.ok()) rank_ = rank;
        return mine;
      }
    }
    return false;
  }

  Result<bool> TakeSlot(int rank) {
    std::string words = word_ + " ";
    if (rank != 0) {
      ASSIGN_OR_RETURN(const std::optional<std::string> first, store_->Read(SlotKey(0)));
      if (!first) return true;
      words = first->substr(0, first->find(' ')) + " " + words;
    }
    const std::string registration = words + digest_;
    SetCommitted(true);
    const Result<std::string> slot = store_->Propose(SlotKey(rank), registration);
    if (!slot.ok()) {
      // No space: the registration does not stand.
      if (NoRoom(slot.status())) SetCommitted(false);
      return slot.status();
    }
    registered_ = slot.value() == registration;
    SetCommitted(registered_);
    return registered_;
  }

  // Slots from `first` on, as many as are read at once.
  Result<std::vector<std::optional<std::string>>> ReadSlots(int first, int end) {
    std::vector<std::string> keys;
    for (int rank = first; rank < std::min(end, first + kSlotsAtOnce); ++rank) {
      keys.push_back(SlotKey(rank));
    }
    return store_->ReadMany(keys);
  }

  // Rank 0 reads the registered slots, in order, many at once. (If all ranks did so, the reads
  // would grow with the square of the ranks.) nullopt: no decision yet.
  Result<std::optional<Mode>> LookAround() {
    std::vector<std::optional<std::string>> slots;
    for (size_t at = 0; seen_ < request_.ranks; ++seen_, ++at) {
      if (at == slots.size()) {
        ASSIGN_OR_RETURN(slots, ReadSlots(seen_, request_.ranks));
        at = 0;
      }
      const std::optional<std::string>& slot = slots[at];
      if (!slot) return std::optional<Mode>();
      const std::string answer = word_ + " ";
      const size_t alike = slot->find(' ', answer.size());
      if (slot->compare(0, answer.size(), answer) != 0 || alike == std::string::npos) {
        ASSIGN_OR_RETURN(Mode next, GiveUp(seen_));
        return std::optional<Mode>(std::move(next));
      }
      const std::string theirs = slot->substr(alike + 1);
      if (theirs != digest_) {
        ASSIGN_OR_RETURN(const std::string text, AlikeText(theirs));
        difference_ = Difference(alike_, 0, text, seen_);
        // A rank without a number that joins after "off" takes it for another communicator's.
        if (request_.rank != kUnknownRank) break;
      }
    }
    ASSIGN_OR_RETURN(Mode mode, ProposeMode(difference_.empty() ? "go:" + Digest(request_.offer)
                                                                : "off:" + difference_));
    return std::optional<Mode>(std::move(mode));
  }

  // The `alike` text with this digest; "" if it cannot be found.
  Result<std::string> AlikeText(const std::string& digest) {
    if (!CheckKey("a" + digest).ok()) return std::string();
    ASSIGN_OR_RETURN(const std::optional<std::string> text, store_->Read("a" + digest));
    return text.value_or("");
  }

  Result<std::string> Missing() {
    std::vector<std::string> missing;
    size_t more = 0;
    // The other ranks register only after rank 0.
    const int last = registered_ ? std::min(request_.ranks, seen_ + kSlotsAtOnce) : 1;
    std::vector<std::optional<std::string>> slots;
    const int first = registered_ ? seen_ : 0;
    if (first < last) {
      ASSIGN_OR_RETURN(slots, ReadSlots(first, last));
    }
    for (int rank = first; rank < last; ++rank) {
      if (slots[static_cast<size_t>(rank - first)]) continue;
      if (missing.size() < kMostNamed) {
        missing.push_back(Format("{}", rank));
      } else {
        ++more;
      }
    }
    const double seconds = std::chrono::duration<double>(request_.limit).count();
    if (request_.rank == kUnknownRank) {
      return Format(
          "{} of {} ranks have not come within {:g} s; do all ranks run with the plugin and "
          "a policy, and do they share {}?",
          static_cast<int>(missing.size() + more), request_.ranks, seconds, store_->Describe());
    }
    // The missing ranks have joined just now.
    if (missing.empty()) {
      return Format("not all of {} ranks came within {:g} s", request_.ranks, seconds);
    }
    const bool one = missing.size() == 1;
    std::string names = ::diapason::Join(missing, ", ");
    if (more > 0) names += Format(" and {} more", more);
    return Format(
        "rank{} {} of {} {} not come within {:g} s; do all ranks run with the plugin, and do they "
        "share {}?",
        one ? "" : "s", names, request_.ranks, one ? "has" : "have", seconds, store_->Describe());
  }

  PatientStore patient_;
  CellStore* const store_;
  const JoinRequest& request_;
  JoinProgress* const progress_;
  const std::string alike_;
  const std::string digest_;  // of alike_
  const std::string word_;
  const steady_clock::time_point deadline_;
  const microseconds first_pause_;  // between two questions, and the longest one
  const microseconds most_pause_;
  std::string id_;           // of the generation: "1f.0."
  bool registered_ = false;  // this rank's own registration stands
  int rank_ = 0;             // the slot, once it is known
  int seen_ = 1;             // rank 0: the slots before this one have registered
  // rank 0: the difference between its slot and one of those; "": they are alike
  std::string difference_;
};

}  // namespace

Result<JoinOutcome> Join(CellStore* store, const JoinRequest& request, JoinProgress* progress) {
  if (request.ranks < 1 || request.ranks > kMostRanks || request.rank < kUnknownRank ||
      request.rank >= request.ranks) {
    return Internal(Format("rank {} of {} cannot join", request.rank, request.ranks));
  }
  JoinProgress unwatched;
  Result<JoinOutcome> outcome =
      Joining(store, request, progress != nullptr ? progress : &unwatched).Run();
  if (!outcome.ok()) return outcome.status().WithContext("joining the other ranks");
  return outcome;
}

}  // namespace diapason::agree
