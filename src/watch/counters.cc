#include "watch/counters.h"

#include "base/text.h"

namespace diapason::watch {
namespace {

// The device counters that indicate lost, late or delayed packets.
constexpr const char* kTrouble[] = {"out_of_buffer",       "out_of_sequence",
                                    "packet_seq_err",      "local_ack_timeout_err",
                                    "rnr_nak_retry_err",   "implied_nak_seq_err",
                                    "roce_adp_retrans",    "rp_cnp_handled",
                                    "np_cnp_sent",         "np_ecn_marked_roce_packets",
                                    "req_cqe_error",       "resp_cqe_error",
                                    "rx_icrc_encapsulated"};

constexpr const char* kErrors[] = {"symbol_error",
                                   "link_downed",
                                   "port_rcv_errors",
                                   "port_xmit_discards",
                                   "local_link_integrity_errors",
                                   "excessive_buffer_overrun_errors"};

uint64_t NumberAt(const RootFs& tree, const std::string& path) {
  const std::optional<std::string> text = tree.Read(path, 64);
  uint64_t value = 0;
  return text && ParseUnsigned(Trim(*text), &value) ? value : 0;
}

double Rate(uint64_t before, uint64_t now, double seconds) {
  return now > before && seconds > 0 ? static_cast<double>(now - before) / seconds : 0;
}

}  // namespace

std::vector<NetCounters> InterfacesOf(const RootFs& tree, pid_t pid) {
  std::vector<NetCounters> list;
  const std::optional<std::string> text =
      tree.Read(Format("/proc/{}/net/dev", static_cast<int>(pid)), size_t{1} << 20);
  if (!text) return list;
  for (const std::string_view line : Split(*text, '\n')) {
    const size_t colon = line.rfind(':');
    if (colon == std::string_view::npos) continue;
    std::vector<uint64_t> numbers;
    for (const std::string_view word : Split(line.substr(colon + 1), ' ')) {
      uint64_t number = 0;
      if (ParseUnsigned(Trim(word), &number)) numbers.push_back(number);
    }
    if (numbers.size() < 12) continue;
    NetCounters counters;
    counters.name = std::string(Trim(line.substr(0, colon)));
    counters.received_bytes = numbers[0];
    counters.sent_bytes = numbers[8];
    counters.errors = numbers[2] + numbers[3] + numbers[10] + numbers[11];
    list.push_back(std::move(counters));
  }
  return list;
}

std::string NetNamespaceOf(const RootFs& tree, pid_t pid) {
  return tree.Link(Format("/proc/{}/ns/net", static_cast<int>(pid))).value_or("");
}

std::vector<NetCounters> RdmaPorts(const RootFs& tree) {
  const std::string root = "/sys/class/infiniband";
  std::vector<NetCounters> list;
  for (const std::string& device : tree.List(root)) {
    for (const std::string& port : tree.List(root + "/" + device + "/ports")) {
      const std::string folder = root + "/" + device + "/ports/" + port;
      NetCounters counters;
      counters.name = device + ":" + port;
      counters.rdma = true;
      // In units of four bytes.
      counters.received_bytes = 4 * NumberAt(tree, folder + "/counters/port_rcv_data");
      counters.sent_bytes = 4 * NumberAt(tree, folder + "/counters/port_xmit_data");
      counters.waiting = NumberAt(tree, folder + "/counters/port_xmit_wait");
      for (const char* name : kErrors) {
        counters.errors += NumberAt(tree, folder + "/counters/" + name);
      }
      for (const char* name : kTrouble) {
        if (const uint64_t value = NumberAt(tree, folder + "/hw_counters/" + name); value > 0) {
          counters.trouble[name] = value;
        }
      }
      list.push_back(std::move(counters));
    }
  }
  return list;
}

std::vector<NetRate> NetRates(const std::vector<NetCounters>& before,
                              const std::vector<NetCounters>& now, double seconds) {
  std::map<std::string, const NetCounters*> known;
  for (const NetCounters& counters : before) known[counters.name] = &counters;
  std::vector<NetRate> rates;
  for (const NetCounters& counters : now) {
    NetRate rate;
    rate.name = counters.name;
    rate.rdma = counters.rdma;
    if (const auto found = known.find(counters.name); found != known.end()) {
      const NetCounters& was = *found->second;
      rate.received_per_s = Rate(was.received_bytes, counters.received_bytes, seconds);
      rate.sent_per_s = Rate(was.sent_bytes, counters.sent_bytes, seconds);
      rate.errors_per_s = Rate(was.errors, counters.errors, seconds);
      rate.waiting_per_s = Rate(was.waiting, counters.waiting, seconds);
      for (const auto& [name, value] : counters.trouble) {
        const auto earlier = was.trouble.find(name);
        const double moved =
            Rate(earlier == was.trouble.end() ? 0 : earlier->second, value, seconds);
        if (moved > 0) rate.trouble_per_s[name] = moved;
      }
    }
    rates.push_back(std::move(rate));
  }
  return rates;
}

}  // namespace diapason::watch
