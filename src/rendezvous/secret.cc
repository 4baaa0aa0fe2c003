#include "rendezvous/secret.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/encoding.h"
#include "base/file.h"
#include "base/text.h"
#include "rendezvous/handshake.h"
#include "rendezvous/socket.h"

namespace diapason::rendezvous {
namespace {

// A process that has seen a proof can try secrets offline: short ones would be found.
constexpr size_t kShortestSecret = 16;
constexpr size_t kLongestSecret = 4096;

Status CheckSecretFile(const struct stat& file) {
  if (!S_ISREG(file.st_mode)) return Invalid("is no regular file");
  if (file.st_uid != ::geteuid()) return Invalid("belongs to another user");
  if ((file.st_mode & 077U) != 0) return Invalid("can be used by other users: chmod 600 it");
  if (static_cast<uint64_t>(file.st_size) > kLongestSecret) return Invalid("is longer than 4 KiB");
  return {};
}

Result<std::string> ReadSecretFile(const std::string& path) {
  // Non-blocking: a pipe without a writer is refused, not waited for.
  const Socket file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat status {};
  if (!file.open() || ::fstat(file.get(), &status) != 0) {
    return IoError("cannot be read: " + ErrnoText(errno));
  }
  RETURN_IF_ERROR(CheckSecretFile(status));
  std::string text(kLongestSecret + 1, '\0');
  size_t length = 0;
  while (length < text.size()) {
    const ssize_t got = ::read(file.get(), text.data() + length, text.size() - length);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return IoError("cannot be read: " + ErrnoText(errno));
    if (got == 0) break;
    length += static_cast<size_t>(got);
  }
  return text.substr(0, length);
}

Result<std::string> CheckSecret(std::string_view text) {
  const std::string_view secret = Trim(text);
  if (secret.empty()) return Invalid("is empty");
  if (secret.size() < kShortestSecret)
    return Invalid("is too short to be a secret: 16 characters or more");
  if (secret.size() > kLongestSecret) return Invalid("is longer than 4 KiB");
  return std::string(secret);
}

}  // namespace

Result<std::string> DrawSecret() {
  ASSIGN_OR_RETURN(const std::string bytes, DrawNonce());
  return EncodeBase64Url(bytes);
}

Result<std::string> ReadSecret(const Environment& environment) {
  const std::string path = environment.Get("DIAPASON_SECRET_FILE").value_or("");
  if (!path.empty()) {
    const Result<std::string> text = ReadSecretFile(path);
    const Result<std::string> secret = text.ok() ? CheckSecret(text.value()) : text;
    if (secret.ok()) return secret;
    return Status::Error(secret.status().code(), "the file of DIAPASON_SECRET_FILE, '" + path +
                                                     "', " + secret.status().message());
  }
  const std::string text = environment.Get("DIAPASON_SECRET").value_or("");
  if (text.empty()) return std::string();
  const Result<std::string> secret = CheckSecret(text);
  if (secret.ok()) return secret;
  return Invalid("DIAPASON_SECRET " + secret.status().message());
}

}  // namespace diapason::rendezvous
