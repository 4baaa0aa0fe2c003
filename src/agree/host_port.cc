#include "agree/host_port.h"

#include <algorithm>

#include "base/text.h"

namespace diapason::agree {

const char* ParseHostPort(std::string_view text, std::string* host, int* port) {
  std::string_view digits;
  bool has_port = false;
  if (!text.empty() && text.front() == '[') {
    const size_t end = text.find(']');
    if (end == std::string_view::npos) return "an address in brackets has no end";
    *host = std::string(text.substr(1, end - 1));
    text.remove_prefix(end + 1);
    has_port = !text.empty();
    if (has_port && text.front() != ':') return "after the brackets comes :port";
    if (has_port) digits = text.substr(1);
  } else {
    const size_t colon = text.find(':');
    *host = std::string(text.substr(0, colon));
    has_port = colon != std::string_view::npos;
    if (has_port) digits = text.substr(colon + 1);
    if (digits.find(':') != std::string_view::npos) return "an IPv6 address is written in brackets";
  }
  uint64_t number = 0;
  if (has_port && (!ParseUnsigned(digits, &number) || number == 0 || number > 65535)) {
    return "the port is a number from 1 to 65535";
  }
  if (has_port) *port = static_cast<int>(number);
  if (host->empty()) return "the host is missing";
  if (std::any_of(host->begin(), host->end(), [](char c) { return c <= ' ' || c == 0x7f; })) {
    return "the host's name has a letter that none has";
  }
  return nullptr;
}

std::string HostPortText(const std::string& host, int port) {
  const bool bare = host.find(':') == std::string::npos;
  return (bare ? host : "[" + host + "]") + Format(":{}", port);
}

}  // namespace diapason::agree
