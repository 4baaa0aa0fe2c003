#include <algorithm>
#include <map>
#include <set>

#include "base/root_fs.h"
#include "base/text.h"
#include "watch/proxy_dump.h"

namespace diapason::watch {
namespace {

constexpr size_t kMostEvidence = 6;

// Identifies an operation: elements of the pool are reused.
using Key = std::tuple<std::string, int64_t, std::string>;
Key KeyOf(const ProxyOp& op) { return {op.place, op.op_count, op.type}; }

std::string SubsOf(const ProxyOp& op) {
  std::string text;
  for (const ProxySub& sub : op.subs) {
    text += Format(" {}{}/{}", sub.peer, sub.status, sub.channel);
  }
  return text;
}

std::string PeersText(const std::set<int64_t>& peers) {
  std::vector<std::string> names;
  for (const int64_t peer : peers) {
    if (names.size() == 8) {
      names.emplace_back("...");
      break;
    }
    names.push_back(std::to_string(peer));
  }
  return (peers.size() == 1 ? "rank " : "ranks ") + Join(names, ", ");
}

// Connections in the same state, over all operations.
struct ConnectionGroup {
  std::string type;
  char status = ' ';
  std::set<int64_t> peers;
  std::set<int64_t> channels;
  size_t connections = 0;
  std::vector<std::string> lines;
};

std::vector<ConnectionGroup> GroupsOf(const std::vector<const ProxyOp*>& ops) {
  std::map<std::pair<std::string, char>, ConnectionGroup> groups;
  for (const ProxyOp* op : ops) {
    std::set<char> seen;
    for (const ProxySub& sub : op->subs) {
      ConnectionGroup& group = groups[{op->type, sub.status}];
      group.type = op->type;
      group.status = sub.status;
      group.peers.insert(sub.peer);
      group.channels.insert(sub.channel);
      ++group.connections;
      if (seen.insert(sub.status).second && group.lines.size() < kMostEvidence) {
        group.lines.push_back(op->line);
      }
    }
  }
  std::vector<ConnectionGroup> list;
  for (auto& [key, group] : groups) list.push_back(std::move(group));
  return list;
}

std::string What(const ConnectionGroup& group) {
  const std::string noun = group.type == "send"   ? "send"
                           : group.type == "recv" ? "receive"
                                                  : "connection";
  const std::string peers = PeersText(group.peers);
  const std::string many = Count(group.connections, noun);
  const bool one = group.connections == 1;
  switch (group.status) {
    case 'R':
      return many + (one ? " waits" : " wait") + " for data from " + peers;
    case 'S':
      return many + " to " + peers + ": the data is with the network, and not acknowledged";
    case 'G':
      return group.type == "send"
                 ? many + (one ? " waits" : " wait") + " for the GPU to hand over data for " + peers
                 : many + (one ? " waits" : " wait") + " for the GPU to take what came from " +
                       peers;
    case 'F':
      return many + " from " + peers + (one ? " is" : " are") + " being flushed into GPU memory";
    case 'I':
      return many + " with " + peers + (one ? " has" : " have") + " buffers to post";
    case 'D':
      return many + " with " + peers + (one ? " is" : " are") + " done";
    case '-':
      return many + " with " + peers + (one ? " has" : " have") + " not begun";
    default:
      return Count(group.connections, noun) + (group.type == "coll" ? " of collectives" : "") +
             " with " + peers + (one ? " is" : " are") + " in flight";
  }
}

std::string Advice(const ConnectionGroup& group) {
  const std::string peers = PeersText(group.peers);
  switch (group.status) {
    case 'R':
      return "Look at " + peers +
             " next: it has not sent, because it is slow, has ended, or has not come to this call";
    case 'S':
      return "Look at the network towards " + peers +
             " and whether that rank posts receives: port counters in `diapason watch`, `diapason "
             "doctor`";
    case 'G':
    case 'F':
      return "Look at this rank's GPU: a kernel that does not run or does not end, or work of "
             "other streams before it";
    case '-':
      return "";
    default:
      return "Ask the other ranks of this communicator too: the one whose dump differs is the one "
             "they wait for";
  }
}

std::vector<std::string> Evidence(std::vector<std::string> lines, size_t more) {
  if (more > 0) lines.push_back(Format("and {} more", more));
  return lines;
}

void Judge(const ProxyDump& dump, const ProxyDump& later, std::vector<Finding>* findings) {
  std::map<Key, const ProxyOp*> before;
  for (const ProxyOp& op : dump.active) before.emplace(KeyOf(op), &op);
  std::vector<const ProxyOp*> stuck;
  size_t moved = 0;
  size_t fresh = 0;
  size_t kept = 0;
  for (const ProxyOp& op : later.active) {
    const auto found = before.find(KeyOf(op));
    if (found == before.end()) {
      ++fresh;
      continue;
    }
    ++kept;
    const bool all_done =
        !op.subs.empty() && std::all_of(op.subs.begin(), op.subs.end(),
                                        [](const ProxySub& sub) { return sub.status == 'D'; });
    if (SubsOf(*found->second) == SubsOf(op) && !all_done) {
      stuck.push_back(&op);
    } else {
      ++moved;
    }
  }
  const size_t ended = before.size() - kept;
  if (moved + fresh + ended > 0) {
    findings->push_back(
        {"proxy.moving",
         stuck.empty() ? Severity::kFine : Severity::kNote,
         Format("the proxy moves: between the two dumps {} ended, {} began, {} went on",
                Count(ended, "operation"), fresh, moved),
         {},
         ""});
  }
  for (const ConnectionGroup& group : GroupsOf(stuck)) {
    if (group.status == 'D') continue;
    // Not an error: a long transfer looks the same twice. An operation that has not begun waits for
    // other ranks.
    findings->push_back({"proxy.stuck", group.status == '-' ? Severity::kNote : Severity::kWarning,
                         "the same in both dumps: " + What(group), group.lines, Advice(group)});
  }
  if (before.empty() && later.active.empty()) {
    findings->push_back(
        {"proxy.idle",
         Severity::kNote,
         "both dumps are empty: this rank's proxy has nothing to do",
         {},
         "Look at what the program waits for (`diapason watch`, a stack of its main thread) and at "
         "the other ranks: this one has either finished, or not begun the call they are in"});
  }
}

}  // namespace

std::vector<Finding> DiagnoseProxyDump(const ProxyDump& dump, const ProxyDump* later) {
  std::vector<Finding> findings;
  if (!dump.found || (later != nullptr && !later->found)) {
    findings.push_back(
        {"proxy.no-dump", Severity::kNote, "there is no dump of the proxy in this text", {}, ""});
    return findings;
  }
  const ProxyDump& last = later == nullptr ? dump : *later;
  if (later != nullptr) {
    Judge(dump, *later, &findings);
  } else if (dump.active.empty()) {
    findings.push_back(
        {"proxy.idle",
         Severity::kNote,
         "the dump is empty: this rank's proxy has nothing to do",
         {},
         "If the job hangs, ask the other ranks: this one has either finished, or not begun the "
         "call they are in; transfers over NVLink and shared memory need no proxy"});
  } else {
    std::vector<const ProxyOp*> ops;
    for (const ProxyOp& op : dump.active) ops.push_back(&op);
    for (const ConnectionGroup& group : GroupsOf(ops)) {
      findings.push_back({"proxy.waiting", Severity::kNote, What(group), group.lines,
                          "One dump cannot tell slow from stuck: take a second one some seconds "
                          "later"});
    }
  }
  if (!last.stray.empty()) {
    std::vector<std::string> lines;
    for (const ProxyOp& op : last.stray) {
      if (lines.size() < kMostEvidence) lines.push_back(op.line);
    }
    const size_t shown = lines.size();
    findings.push_back({"proxy.stray", Severity::kNote,
                        Format("{} in no list: the proxy worked on while the dump was written",
                               Count(last.stray.size(), "operation")),
                        Evidence(std::move(lines), last.stray.size() - shown), ""});
  }
  if (!last.complete) {
    findings.push_back({"proxy.cut-short",
                        Severity::kNote,
                        "the dump has no end: the rest is still in the process's buffer of "
                        "standard output, or was cut off",
                        {},
                        ""});
  }
  return findings;
}

}  // namespace diapason::watch
