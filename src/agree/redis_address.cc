#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "agree/host_port.h"
#include "agree/private_folder.h"
#include "agree/redis_link.h"
#include "base/file.h"
#include "base/text.h"

namespace diapason::agree {
namespace {

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool DecodePercent(std::string_view text, std::string* out) {
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      *out += text[i];
      continue;
    }
    if (i + 2 >= text.size()) return false;
    const int high = HexDigit(text[i + 1]);
    const int low = HexDigit(text[i + 2]);
    if (high < 0 || low < 0) return false;
    *out += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return true;
}

constexpr std::string_view kFileOption = "?password-file=";
constexpr size_t kLongestPassword = 4096;

Status BadAddress(const char* why) {
  return Invalid(
      Format("a store in Redis is written redis://[user][:password@]host[:port]"
             "[/database][?password-file=/a/file]: {}",
             why));
}

// Each takes its part off the address; the rest is for the next.
Status TakePasswordFile(std::string_view* rest, RedisAddress* address) {
  const size_t option = rest->find(kFileOption);
  if (option == std::string_view::npos) return {};
  const std::string_view file = rest->substr(option + kFileOption.size());
  if (file.find('&') != std::string_view::npos) {
    return BadAddress("an & in a file's name is written %26");
  }
  if (!DecodePercent(file, &address->password_file)) {
    return BadAddress("a % in the file's name must be followed by two hexadecimal digits");
  }
  if (address->password_file.empty() || address->password_file.front() != '/') {
    return BadAddress("the password's file needs its full path");
  }
  address->authenticate = true;
  *rest = rest->substr(0, option);
  return {};
}

Status TakeUser(std::string_view* rest, RedisAddress* address) {
  // The last '@': a password may contain others.
  const size_t at = rest->rfind('@');
  if (at == std::string_view::npos) return {};
  const std::string_view who = rest->substr(0, at);
  rest->remove_prefix(at + 1);
  const size_t colon = who.find(':');
  if (!DecodePercent(who.substr(0, colon), &address->user) ||
      (colon != std::string_view::npos &&
       !DecodePercent(who.substr(colon + 1), &address->password))) {
    return BadAddress("a % in the user or the password must be followed by two hexadecimal digits");
  }
  if (colon != std::string_view::npos && !address->password_file.empty()) {
    return BadAddress("the password is given twice, by itself and in a file");
  }
  address->authenticate = true;
  return {};
}

}  // namespace

Result<RedisAddress> ParseRedisAddress(const std::string& url) {
  constexpr std::string_view kScheme = "redis://";
  if (url.compare(0, kScheme.size(), kScheme) != 0) return BadAddress("it begins with redis://");
  std::string_view rest = std::string_view(url).substr(kScheme.size());
  RedisAddress address;
  RETURN_IF_ERROR(TakePasswordFile(&rest, &address));
  RETURN_IF_ERROR(TakeUser(&rest, &address));
  if (const size_t slash = rest.find('/'); slash != std::string_view::npos) {
    const std::string_view database = rest.substr(slash + 1);
    uint64_t number = 0;
    if (!database.empty() && (!ParseUnsigned(database, &number) || number > 1000000)) {
      return BadAddress("the database is a number");
    }
    address.database = static_cast<int>(number);
    rest = rest.substr(0, slash);
  }
  const char* const wrong = ParseHostPort(rest, &address.host, &address.port);
  if (address.host.find('?') != std::string::npos) {
    return BadAddress("the only option is ?password-file=/a/file");
  }
  if (wrong != nullptr) return BadAddress(wrong);
  return address;
}

Status ReadPasswordFile(RedisAddress* address) {
  if (address->password_file.empty()) return {};
  const auto bad = [&](const std::string& why) {
    return Unavailable(
        Format("cannot use the password's file '{}': {}", address->password_file, why));
  };
  const Descriptor file(
      ::open(address->password_file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (file.get() < 0) return bad(ErrnoText(errno));
  struct stat info;
  if (::fstat(file.get(), &info) != 0) return bad(ErrnoText(errno));
  if (const std::string wrong = NotOurs(info); !wrong.empty()) return bad(wrong + "; chmod 600 it");
  std::string text(kLongestPassword + 2, '\0');
  size_t have = 0;
  while (have < text.size()) {
    const ssize_t got = ::read(file.get(), text.data() + have, text.size() - have);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return bad(ErrnoText(errno));
    if (got == 0) break;
    have += static_cast<size_t>(got);
  }
  text.resize(have);
  text.resize(std::min(text.find('\n'), text.size()));
  if (text.empty()) return bad("its first line is empty");
  if (text.size() > kLongestPassword) return bad("its first line is too long");
  address->password = std::move(text);
  return {};
}

}  // namespace diapason::agree
