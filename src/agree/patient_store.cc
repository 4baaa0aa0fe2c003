#include "agree/patient_store.h"

#include <algorithm>
#include <thread>

#include "agree/private_folder.h"
#include "base/text.h"

namespace diapason::agree {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kFirstPause{5};
constexpr milliseconds kLongestPause{500};

// Random, so that ranks that lost the server together do not return together.
milliseconds Jittered(milliseconds pause) {
  return pause / 2 + milliseconds(RandomWord() % static_cast<uint64_t>(pause.count()));
}

}  // namespace

PatientStore::PatientStore(CellStore* store, milliseconds patience, Say say)
    : CellStore(patience), store_(store), say_(std::move(say)) {}

template <typename Value, typename Attempt>
Result<Value> PatientStore::Patiently(Deadline deadline, const Attempt& attempt) const {
  const auto began = steady_clock::now();
  bool waiting = false;
  for (milliseconds pause = kFirstPause;; pause = std::min(pause * 2, kLongestPause)) {
    // The first attempt has kUsualLimit even without patience.
    const Deadline usual = steady_clock::now() + kUsualLimit;
    Result<Value> result = attempt(waiting ? std::min(deadline, usual) : usual);
    const auto now = steady_clock::now();
    const bool again = !result.ok() && Retryable(result.status()) && now < deadline;
    const double seconds = std::chrono::duration<double>(now - began).count();
    if (!again) {
      if (waiting && say_) {
        say_(Format(
            "{} {:.1f} s",
            result.ok() ? "the store answers again, after" : "waited in vain for the store, for",
            seconds));
      }
      return result;
    }
    if (!waiting && say_) {
      say_(Format("waiting for the store, at most {:.0f} s: {}",
                  std::chrono::duration<double>(deadline - began).count(),
                  result.status().message()));
    }
    waiting = true;
    std::this_thread::sleep_for(std::min<steady_clock::duration>(Jittered(pause), deadline - now));
  }
}

Result<std::string> PatientStore::Propose(std::string_view key, std::string_view value,
                                          Deadline deadline) {
  return Patiently<std::string>(deadline,
                                [&](Deadline until) { return store_->Propose(key, value, until); });
}

Result<std::optional<std::string>> PatientStore::Read(std::string_view key, Deadline deadline) {
  return Patiently<std::optional<std::string>>(
      deadline, [&](Deadline until) { return store_->Read(key, until); });
}

Result<std::vector<std::optional<std::string>>> PatientStore::ReadMany(
    const std::vector<std::string>& keys, Deadline deadline) {
  return Patiently<std::vector<std::optional<std::string>>>(
      deadline, [&](Deadline until) { return store_->ReadMany(keys, until); });
}

}  // namespace diapason::agree
