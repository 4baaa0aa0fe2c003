#include "logs/proxy_trace.h"

#include <algorithm>

#include "logs/cursor.h"

namespace diapason::logs {
namespace {

// The number behind ", name:", at any position: the fields in between depend on the version.
int64_t Field(std::string_view line, std::string_view name) {
  Cursor cursor(line);
  int64_t value = 0;
  while (cursor.SkipTo(name)) {
    if (cursor.Skip(":") && cursor.Number(&value)) return value;
  }
  return 0;
}

}  // namespace

bool ParseProxyTrace(std::string_view line, ProxyTraceOp* op) {
  Cursor cursor(line);
  if (!cursor.SkipTo("createT:") || !cursor.SkipTo("<")) return false;
  // The communicator's hash is printed as a decimal number of up to twenty digits.
  uint64_t hash = 0;
  std::string_view digits;
  if (!cursor.Until(":", &digits) || digits.empty() || digits.size() > 20) return false;
  for (const char c : digits) {
    if (c < '0' || c > '9') return false;
    hash = hash * 10 + static_cast<uint64_t>(c - '0');
  }
  op->communicator = hash;
  if (!cursor.Number(&op->op_count)) return false;
  // "..., 3->5(S), chan:0, status:SENDING, ..."
  const size_t arrow = cursor.rest().find("->");
  if (arrow == std::string_view::npos) return false;
  size_t first = arrow;
  while (first > 0 && cursor.rest()[first - 1] >= '0' && cursor.rest()[first - 1] <= '9') --first;
  Cursor ranks(cursor.rest().substr(first));
  if (!ranks.Number(&op->rank) || !ranks.Skip("->") || !ranks.Number(&op->peer)) return false;
  if (!ranks.Skip("(")) return false;
  op->send = ranks.Skip("S");
  std::string_view status;
  Cursor behind(ranks.rest());
  if (!behind.SkipTo("status:") || !behind.Until(",", &status)) return false;
  op->status = std::string(status.substr(0, 24));
  op->channel = Field(ranks.rest(), ", chan");
  op->steps = Field(ranks.rest(), ", ns");
  op->posted = Field(ranks.rest(), ", po");
  op->transmitted = Field(ranks.rest(), ", trans");
  op->received = Field(ranks.rest(), ", recvd");
  op->done = Field(ranks.rest(), ", done");
  return true;
}

bool ProxyTraces::Line(const Spot& spot, std::string_view line) {
  ProxyTraceOp op;
  if (!ParseProxyTrace(line, &op)) return false;
  if (op.status == "DONE") {
    ++finished;
    return true;
  }
  ++unfinished;
  const auto older = [](const ProxyTraceOp& a, const ProxyTraceOp& b) {
    return a.op_count < b.op_count;
  };
  if (oldest.size() >= kMost && !older(op, oldest.back())) return true;
  op.place = MakePlace(spot, line);
  oldest.insert(std::upper_bound(oldest.begin(), oldest.end(), op, older), op);
  if (oldest.size() > kMost) oldest.pop_back();
  return true;
}

}  // namespace diapason::logs
