#include "agree/redis_link.h"
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

}  // namespace

Result<RedisAddress> ParseRedisAddress(const std::string& url) {
  const auto bad = [](const char* why) {
    return Invalid(
        Format("a store in Redis is written redis://[user][:password@]host[:port]"
               "[/database]: %s",
               why));
  };
  constexpr std::string_view kScheme = "redis://";
  if (url.compare(0, kScheme.size(), kScheme) != 0) return bad("it begins with redis://");
  std::string_view rest = std::string_view(url).substr(kScheme.size());
  RedisAddress address;
  // The last one: a password may hold others.
  if (const size_t at = rest.rfind('@'); at != std::string_view::npos) {
    const std::string_view who = rest.substr(0, at);
    rest.remove_prefix(at + 1);
    const size_t colon = who.find(':');
    if (!DecodePercent(who.substr(0, colon), &address.user) ||
        (colon != std::string_view::npos &&
         !DecodePercent(who.substr(colon + 1), &address.password))) {
      return bad("a % in the user or the password must be followed by two hexadecimal digits");
    }
    address.authenticate = true;
  }
  if (const size_t slash = rest.find('/'); slash != std::string_view::npos) {
    const std::string_view database = rest.substr(slash + 1);
    uint64_t number = 0;
    if (!database.empty() && (!ParseUnsigned(database, &number) || number > 1000000)) {
      return bad("the database is a number");
    }
    address.database = static_cast<int>(number);
    rest = rest.substr(0, slash);
  }
  std::string_view port;
  bool has_port = false;
  if (!rest.empty() && rest.front() == '[') {
    const size_t end = rest.find(']');
    if (end == std::string_view::npos) return bad("an address in brackets has no end");
    address.host = std::string(rest.substr(1, end - 1));
    rest.remove_prefix(end + 1);
    has_port = !rest.empty();
    if (has_port && rest.front() != ':') return bad("after the brackets comes :port");
    if (has_port) port = rest.substr(1);
  } else {
    const size_t colon = rest.find(':');
    address.host = std::string(rest.substr(0, colon));
    has_port = colon != std::string_view::npos;
    if (has_port) port = rest.substr(colon + 1);
    if (port.find(':') != std::string_view::npos) {
      return bad("an IPv6 address is written in brackets");
    }
  }
  if (has_port) {
    uint64_t number = 0;
    if (!ParseUnsigned(port, &number) || number == 0 || number > 65535) {
      return bad("the port is a number from 1 to 65535");
    }
    address.port = static_cast<int>(number);
  }
  if (address.host.empty()) return bad("the host is missing");
  for (const char c : address.host) {
    if (c <= ' ' || c == 0x7f) return bad("the host's name has a letter that none has");
  }
  return address;
}

}  // namespace diapason::agree
