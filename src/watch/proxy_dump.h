#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "domain/finding.h"

namespace diapason::watch {

// One connection's share of an operation that a proxy thread is working on. NCCL and RCCL print the
// peer, the channel and a letter; the counters behind the letter are not printed.
struct ProxySub {
  int64_t peer = -1;
  int64_t channel = -1;
  // Of sends and receives in progress: 'I' posts buffers, 'G' waits for the GPU, 'S' sends, 'R'
  // waits for data of the peer, 'F' flushes what came to the GPU, 'D' is done. ' ': in progress, as
  // is all that is printed of collectives. '-': not begun.
  char status = '-';
};

struct ProxyOp {
  std::string line;       // as it was printed
  std::string place;      // pool and element: "0-3"
  int64_t op_count = -1;  // as printed: twice the number, plus one for point to point
  std::string type;       // "send" or "recv" (point to point), "coll"
  std::string state;      // "progress"; "ready" (or not begun) where no letters are printed
  std::vector<ProxySub> subs;
};

// What NCCL prints when NCCL_PROXY_DUMP_SIGNAL's signal comes.
struct ProxyDump {
  std::vector<ProxyOp> active;
  std::vector<ProxyOp> stray;  // in no list of the proxy's
  size_t free_ops = 0;
  bool found = false;        // there was a dump at all
  bool complete = false;     // its end was there
  size_t damaged_lines = 0;  // not understood; lines of other threads get in between
};

// Whether a line can belong to such a dump: readers of logs collect those and hand them over.
bool IsProxyDumpLine(std::string_view line);
// The last dump in a text. Never fails: what it cannot read it counts.
ProxyDump ParseProxyDump(std::string_view text);
// All dumps in a text, in their order; at most the last 64.
std::vector<ProxyDump> ParseProxyDumps(std::string_view text);
// "waits for data from the peer" for 'R'.
std::string_view ProxyStatusText(char status);
// What it shows: operations that stand still, connections that wait for the other side, nothing
// in flight. With a second dump taken later it can tell what moves from what is stuck.
std::vector<Finding> DiagnoseProxyDump(const ProxyDump& dump, const ProxyDump* later);

}  // namespace diapason::watch
