#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "domain/finding.h"

namespace diapason::watch {

// One connection's part of an operation of a proxy thread. NCCL and RCCL print the peer, the
// channel and a letter, but not the counters behind the letter.
struct ProxySub {
  int64_t peer = -1;
  int64_t channel = -1;
  // For sends and receives in progress: 'I' posts buffers, 'G' waits for the GPU, 'S' sends, 'R'
  // waits for data of the peer, 'F' flushes received data to the GPU, 'D' is done. ' ': in
  // progress, which is all that is printed for collectives. '-': not begun.
  char status = '-';
};

struct ProxyOp {
  std::string line;       // as it was printed
  std::string place;      // pool and element: "0-3"
  int64_t op_count = -1;  // as printed: twice the number, plus one for point to point
  std::string type;       // "send" or "recv" (point to point), "coll"
  std::string state;      // "progress"; "ready" (or not begun) if no letters are printed
  std::vector<ProxySub> subs;
};

// The output of NCCL for NCCL_PROXY_DUMP_SIGNAL's signal.
struct ProxyDump {
  std::vector<ProxyOp> active;
  std::vector<ProxyOp> stray;  // in none of the proxy's lists
  size_t free_ops = 0;
  bool found = false;        // there was a dump at all
  bool complete = false;     // its end was there
  size_t damaged_lines = 0;  // not parsed; lines of other threads may be interleaved
};

// Whether a line can belong to such a dump: log readers collect those lines for ParseProxyDump.
bool IsProxyDumpLine(std::string_view line);
// The last dump in a text. Never fails: invalid lines are counted.
ProxyDump ParseProxyDump(std::string_view text);
// All dumps in a text, in order; at most the last 64.
std::vector<ProxyDump> ParseProxyDumps(std::string_view text);
// "waits for data from the peer" for 'R'.
std::string_view ProxyStatusText(char status);
// Findings about operations without progress, connections that wait for the peer, and idle proxies.
// With a second, later dump it distinguishes slow from stuck operations.
std::vector<Finding> DiagnoseProxyDump(const ProxyDump& dump, const ProxyDump* later);

}  // namespace diapason::watch
