#pragma once

#include <string>
#include <string_view>

namespace diapason::agree {

// Reads "host", "host:port" or "[IPv6 address]:port"; without a port, `*port` stays as it is.
// nullptr, or what is wrong with the text.
const char* ParseHostPort(std::string_view text, std::string* host, int* port);

// The opposite: an IPv6 address gets its brackets.
std::string HostPortText(const std::string& host, int port);

}  // namespace diapason::agree
