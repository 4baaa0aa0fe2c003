#pragma once

#include <cassert>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace diapason {

// The kind of error; the command-line tool maps it to an exit status.
enum class ErrorCode {
  kInvalid,      // the input is wrong: a typo, a bad value, a malformed file
  kNotFound,     // a named file, variable or object does not exist
  kUnavailable,  // it exists, but cannot be used here
  kIo,           // the operating system reported an error
  kTimeout,      // a wait reached its limit
  kPeerLost,     // another rank of the group has ended
  kInternal,     // a bug in diapason
  kNoRoom,       // it is full
};

// The error type. A Status is either OK (one null pointer) or carries a code and a message for the
// user. Callers add context on the way up, outermost first:
//
//   reading policy 'x.conf': line 3: unknown algorithm 'rng'; did you mean 'ring'?
//
// A Status is a value: it can be copied, moved and shared between threads as any other value.
class [[nodiscard]] Status {
 public:
  Status() = default;
  static Status Error(ErrorCode code, std::string message) {
    Status status;
    status.content_ = std::make_unique<Content>(Content{code, std::move(message)});
    return status;
  }
  Status(const Status& other)
      : content_(other.ok() ? nullptr : std::make_unique<Content>(*other.content_)) {}
  Status& operator=(const Status& other) {
    if (this != &other) *this = Status(other);
    return *this;
  }
  Status(Status&&) noexcept = default;
  Status& operator=(Status&&) noexcept = default;
  ~Status() = default;

  bool ok() const { return content_ == nullptr; }
  // REQUIRES: !ok()
  ErrorCode code() const {
    assert(!ok());
    return content_->code;
  }
  // Empty when ok().
  const std::string& message() const {
    static const std::string nothing;
    if (content_ == nullptr) return nothing;
    return content_->message;
  }

  // The same error with the caller's context in front. An OK status stays OK.
  Status WithContext(std::string_view context) const {
    if (ok()) return *this;
    return Error(code(), std::string(context) + ": " + message());
  }

 private:
  struct Content {
    ErrorCode code;
    std::string message;
  };
  std::unique_ptr<Content> content_;
};

inline Status Invalid(std::string message) {
  return Status::Error(ErrorCode::kInvalid, std::move(message));
}
inline Status NotFound(std::string message) {
  return Status::Error(ErrorCode::kNotFound, std::move(message));
}
inline Status Unavailable(std::string message) {
  return Status::Error(ErrorCode::kUnavailable, std::move(message));
}
inline Status OutOfRoom(std::string message) {
  return Status::Error(ErrorCode::kNoRoom, std::move(message));
}
inline Status IoError(std::string message) {
  return Status::Error(ErrorCode::kIo, std::move(message));
}
inline Status TimedOut(std::string message) {
  return Status::Error(ErrorCode::kTimeout, std::move(message));
}
inline Status PeerLost(std::string message) {
  return Status::Error(ErrorCode::kPeerLost, std::move(message));
}
inline Status Internal(std::string message) {
  return Status::Error(ErrorCode::kInternal, std::move(message));
}

// A value, or the Status that explains why there is none.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : content_(std::move(value)) {}  // NOLINT: implicit on purpose
  Result(Status status) : content_(std::move(status)) { assert(!ok()); }  // NOLINT

  bool ok() const { return std::holds_alternative<T>(content_); }
  // REQUIRES: ok()
  const T& value() const& { return std::get<T>(content_); }
  T& value() & { return std::get<T>(content_); }
  T&& value() && { return std::get<T>(std::move(content_)); }
  Status status() const { return ok() ? Status() : std::get<Status>(content_); }

 private:
  std::variant<T, Status> content_;
};

}  // namespace diapason
