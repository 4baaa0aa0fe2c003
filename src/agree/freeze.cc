#include "agree/freeze.h"

#include "base/text.h"

namespace diapason::agree {
namespace {

constexpr char kFreeze[] = "freeze";
constexpr char kThaw[] = "thaw";
// More than an operator types; a store with more cells was not written by the tool.
constexpr uint64_t kMostWords = 10000;

std::string Key(uint64_t number) { return Format("control.{}", number); }

}  // namespace

Status FreezeLog::Look() {
  for (; next_ < kMostWords; ++next_) {
    ASSIGN_OR_RETURN(const std::optional<std::string> word, store_->Read(Key(next_)));
    if (!word) return {};
    frozen_ = *word == kFreeze;
  }
  return {};
}

Result<bool> FreezeLog::Set(bool frozen) {
  while (true) {
    RETURN_IF_ERROR(Look());
    if (frozen_ == frozen) return false;
    if (next_ == kMostWords) return Unavailable("the job was frozen and thawed too often");
    ASSIGN_OR_RETURN(const std::string word, store_->Propose(Key(next_), frozen ? kFreeze : kThaw));
    ++next_;
    frozen_ = word == kFreeze;
    if (frozen_ == frozen) return true;
  }
}

}  // namespace diapason::agree
