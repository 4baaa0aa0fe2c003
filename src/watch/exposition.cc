#include "watch/exposition.h"

#include <cmath>
#include <map>

#include "base/text.h"

namespace diapason::watch {
namespace {

using Labels = std::vector<std::pair<const char*, std::string>>;

// Lines of one name must be consecutive, below its HELP and TYPE.
class Families {
 public:
  void Add(const char* name, const char* type, const char* help, const Labels& labels,
           double value) {
    const auto [at, fresh] = places_.emplace(name, families_.size());
    if (fresh) {
      families_.push_back(
          Format("# HELP diapason_{} {}\n# TYPE diapason_{} {}\n", name, help, name, type));
    }
    std::string line = Format("diapason_{}", name);
    for (size_t i = 0; i < labels.size(); ++i) {
      line += Format("{}{}=\"", i == 0 ? "{" : ",", labels[i].first);
      line += EscapeLabel(labels[i].second) + "\"";
    }
    if (!labels.empty()) line += "}";
    families_[at->second] += line + Format(" {:.17g}\n", std::isfinite(value) ? value : 0.0);
  }
  std::string Text() const {
    std::string text;
    for (const std::string& family : families_) text += family;
    return text;
  }

 private:
  std::vector<std::string> families_;
  std::map<std::string, size_t> places_;
};

void AddThread(const Labels& of, const ThreadRate& thread, const char* role, Families* families) {
  Labels labels = of;
  labels.emplace_back("thread", thread.name);
  labels.emplace_back("role", role);
  labels.emplace_back("tid", thread.tid == 0 ? "" : std::to_string(thread.tid));
  families->Add("thread_cpu", "gauge", "CPUs that a thread, or all threads of a name, used.",
                labels, thread.cpu());
  if (thread.has_wait) {
    families->Add("thread_wait_share", "gauge",
                  "Share of the time it could have run and had no CPU.", labels, thread.wait);
  }
  if (thread.futex.told > 0) {
    families->Add("thread_futex_share", "gauge", "Share of looks that found it waiting in a futex.",
                  labels,
                  static_cast<double>(thread.futex.futex) / static_cast<double>(thread.futex.told));
  }
  families->Add("thread_voluntary_switches_per_second", "gauge",
                "Context switches because it waited for something.", labels,
                thread.voluntary_per_s);
  families->Add("thread_involuntary_switches_per_second", "gauge",
                "Context switches because it was pushed off its CPU.", labels,
                thread.involuntary_per_s);
}

void AddJournal(const Labels& labels, const ProcessView& process, Families* families) {
  const JournalTail::Counts& counts = process.journal->counts();
  families->Add("operations_total", "counter", "Collectives in the journal.", labels,
                static_cast<double>(counts.operations()));
  families->Add("decisions_total", "counter", "Decisions in the journal.", labels,
                static_cast<double>(counts.decisions));
  families->Add("runs_total", "counter", "Runs in the journal.", labels,
                static_cast<double>(counts.runs));
  families->Add("bypassed_total", "counter",
                "Collectives about which the library did not ask the tuner.", labels,
                static_cast<double>(counts.bypassed));
  families->Add("rewards_total", "counter", "Rewards in the journal.", labels,
                static_cast<double>(counts.rewards));
  families->Add("journal_dropped_total", "counter", "Records dropped because the journal was full.",
                labels, static_cast<double>(counts.dropped));
  families->Add("operations_per_second", "gauge", "Collectives a second.", labels,
                process.operations_per_s);
}

void AddProcess(const ProcessView& process, Families* families) {
  Labels labels = {{"pid", std::to_string(process.now.pid)},
                   {"rank", process.rank < 0 ? "" : std::to_string(process.rank)}};
  families->Add("process_up", "gauge", "1 while the process runs.", labels, process.ended ? 0 : 1);
  if (process.journal_read) AddJournal(labels, process, families);
  if (process.ended) return;
  families->Add("process_resident_bytes", "gauge", "Resident memory.", labels,
                static_cast<double>(process.now.resident));
  families->Add("process_shared_bytes", "gauge", "Resident shared memory.", labels,
                static_cast<double>(process.now.shared_memory));
  families->Add("process_locked_bytes", "gauge", "Memory locked into RAM.", labels,
                static_cast<double>(process.now.locked));
  families->Add("process_pinned_bytes", "gauge", "Memory pinned for devices.", labels,
                static_cast<double>(process.now.pinned));
  families->Add("process_swapped_bytes", "gauge", "Memory swapped out.", labels,
                static_cast<double>(process.now.swapped));
  families->Add("process_open_files", "gauge", "Open files.", labels, process.now.open_files);
  families->Add("process_threads", "gauge", "Threads.", labels,
                static_cast<double>(process.now.threads.size()));
  if (process.first) return;
  families->Add("process_cpu", "gauge", "CPUs that the process used.", labels,
                process.rate.total.cpu());
  families->Add("process_growth_bytes_per_minute", "gauge", "Growth of resident memory.", labels,
                process.growth);
  for (const ThreadRate& thread : process.rate.named) {
    AddThread(labels, thread, std::string(host::ThreadRoleName(thread.role)).c_str(), families);
  }
  for (const ThreadRate& thread : process.rate.others) {
    AddThread(labels, thread, "other", families);
  }
}

void AddNet(const std::string& of, const NetRate& rate, Families* families) {
  const Labels labels = {{"device", rate.name}, {"of", of}};
  families->Add("net_received_bytes_per_second", "gauge",
                "Bytes received by an interface or RDMA port, of all that use it.", labels,
                rate.received_per_s);
  families->Add("net_sent_bytes_per_second", "gauge",
                "Bytes sent by an interface or RDMA port, of all that use it.", labels,
                rate.sent_per_s);
  families->Add("net_errors_per_second", "gauge", "Errors and drops.", labels, rate.errors_per_s);
  for (const auto& [name, value] : rate.trouble_per_s) {
    Labels more = labels;
    more.emplace_back("counter", name);
    families->Add("net_trouble_per_second", "gauge",
                  "Counters of an RDMA device that mean lost, late or slowed packets.", more,
                  value);
  }
}

// The length in bytes of the UTF-8 character at the front; 0: invalid.
size_t CharacterSize(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  const size_t size = first < 0x80 ? 1 : first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  if (size == 0 || first > 0xf4 || text.size() < size) return 0;
  for (size_t i = 1; i < size; ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xc0) != 0x80) return 0;
  }
  return size;
}

}  // namespace

std::string EscapeLabel(std::string_view value) {
  std::string text;
  while (!value.empty()) {
    const size_t size = CharacterSize(value);
    const char c = value[0];
    if (size == 0) {
      text += '?';
    } else if (c == '\\' || c == '"') {
      text += '\\';
      text += c;
    } else if (c == '\n') {
      text += "\\n";
    } else if (size == 1 && (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)) {
      text += ' ';
    } else {
      text += value.substr(0, size);
    }
    value.remove_prefix(size == 0 ? 1 : size);
  }
  return text;
}

std::string ExpositionOf(const WatchView& view) {
  Families families;
  for (const ProcessView& process : view.processes) AddProcess(process, &families);
  for (const WatchView::Net& net : view.nets) {
    for (const NetRate& rate : net.rates) AddNet(net.of, rate, &families);
  }
  for (const NetRate& rate : view.rdma) AddNet("rdma", rate, &families);
  return families.Text();
}

}  // namespace diapason::watch
