#include "session.h"

#include <algorithm>
#include <cstdio>

#include "base/text.h"

namespace diapason::conformance {
namespace {

// A broken backend fails everything; the first lines say how.
constexpr int64_t kShownFailures = 40;

const char* CodeName(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalid:
      return "invalid";
    case ErrorCode::kNotFound:
      return "not found";
    case ErrorCode::kUnavailable:
      return "unavailable";
    case ErrorCode::kNoRoom:
      return "no room";
    case ErrorCode::kIo:
      return "io";
    case ErrorCode::kTimeout:
      return "timeout";
    case ErrorCode::kPeerLost:
      return "peer lost";
    case ErrorCode::kInternal:
      return "internal";
  }
  return "?";
}

}  // namespace

bool Session::Create() {
  options_.log = [this](const std::string& line) {
    const std::lock_guard<std::mutex> lock(log_mutex_);
    log_.push_back(line);
    // Nobody reads the log of a job that its backend ends.
    if (line.find("the job ends here") != std::string::npos) {
      std::fputs(Format("FAIL in '{}': {}\n", case_, line).c_str(), stderr);
    }
  };
  auto created = Group::Create(options_);
  if (!created.ok()) {
    ++checks_;
    ++failures_;
    broken_ = true;
    std::fprintf(stderr, "FAIL creation, rank %d: %s\n", options_.rank,
                 created.status().message().c_str());
    return false;
  }
  group_ = std::move(created).value();
  return true;
}

bool Session::Expect(bool holds, const std::string& what) {
  ++checks_;
  if (holds) return true;
  if (++failures_ <= kShownFailures) {
    // One write a line: several ranks share the stream.
    const std::string line = Format("FAIL rank {} of {}, {}: ", rank(), size(), case_);
    std::fputs((line + what + "\n").c_str(), stderr);
  }
  return false;
}

bool Session::Fine(const Status& status, const std::string& what) {
  if (status.ok()) return Expect(true, what);
  if (status.code() == ErrorCode::kTimeout || status.code() == ErrorCode::kPeerLost) broken_ = true;
  return Expect(false, what + ": " + CodeName(status.code()) + ": " + status.message());
}

bool Session::Refused(const Status& status, const std::string& what, const std::string& word) {
  if (!Expect(!status.ok(), what + ": accepted, expected to be refused")) return false;
  const bool clear =
      (status.code() == ErrorCode::kInvalid || status.code() == ErrorCode::kUnavailable) &&
      !status.message().empty();
  if (!clear) return Fine(status, what + ": expected a refusal, not");
  return Expect(status.message().find(word) != std::string::npos,
                what + ": expected '" + word + "' in '" + status.message() + "'");
}

void Session::Note(const std::string& text) {
  if (std::find(notes_.begin(), notes_.end(), text) == notes_.end()) notes_.push_back(text);
}

std::vector<std::string> Session::TakeLog() {
  const std::lock_guard<std::mutex> lock(log_mutex_);
  return std::exchange(log_, {});
}

}  // namespace diapason::conformance
