#include "compare/against.h"

#include <algorithm>

#include "base/text.h"

namespace diapason::compare {
namespace {

// Beyond this many launches for each old one, the old side's own launches are what is uncertain.
constexpr size_t kMostForEachOld = 6;

bool IsLook(size_t launches, size_t most) {
  if (launches == most) return true;
  return std::find(std::begin(Against::kLooks), std::end(Against::kLooks), launches) !=
         std::end(Against::kLooks);
}

}  // namespace

Against::Against(Side before, CompareOptions options, size_t most_launches)
    : before_(std::move(before)), options_(options), most_(most_launches) {
  options_.alpha = kAlpha / static_cast<double>(kLookCount);
  after_.name = "fresh launches";
}

std::vector<dataset::Point> Against::Calls() const {
  // A comparison with itself has every call, in order.
  std::vector<dataset::Point> calls;
  for (const CallComparison& one : Compare(before_, before_, {}).calls) calls.push_back(one.point);
  return calls;
}

void Against::Add(const dataset::StoreContents& contents, const std::string& name) {
  AddRuns(contents, name, true, &after_);
}

bool Against::Done() {
  if (!why_.empty()) return true;
  const size_t launches = after_.launches.size();
  if (launches == 0) return false;
  if (!IsLook(launches, most_)) return false;
  const Comparison now = Result();
  if (!now.calls.empty() && now.Count(Verdict::kCannotTell) == 0) {
    why_ = "every call is decided";
  } else if (launches >= most_) {
    why_ = Format("there were {} launches, the most allowed", launches);
  } else if (launches >= kMostForEachOld * std::max<size_t>(before_.launches.size(), 1)) {
    why_ = Format("the old side has {} {} only: more new ones cannot tell more",
                  before_.launches.size(), before_.launches.size() == 1 ? "launch" : "launches");
  }
  return !why_.empty();
}

void Against::Stop(const std::string& why) {
  if (why_.empty()) why_ = why;
}

Comparison Against::Result() const { return Compare(before_, after_, options_); }

}  // namespace diapason::compare
