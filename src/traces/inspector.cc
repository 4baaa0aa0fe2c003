#include "traces/inspector.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "dataset/words.h"

namespace diapason::traces {
namespace {

using nlohmann::json;

constexpr size_t kLongestLine = size_t{1} << 20;
constexpr double kMostBytes = 1125899906842624;  // 2 to the 50
constexpr double kMostRanks = 1e7;

const json* ObjectIn(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_object() ? &*found : nullptr;
}

double NumberIn(const json& object, const char* key, double otherwise) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number() ? found->get<double>() : otherwise;
}

std::string TextIn(const json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end()) return "";
  if (found->is_string()) return dataset::Printable(found->get<std::string>());
  if (found->is_number_unsigned()) return std::to_string(found->get<uint64_t>());
  return "";
}

uint64_t CountIn(const json& object, const char* key) {
  return static_cast<uint64_t>(std::clamp(NumberIn(object, key, 0), 0.0, 1e15));
}

// The communicator that the lines below belong to.
struct Header {
  std::string id;
  int rank = -1;
  int ranks = 0;
  int nodes = 1;
};

class DumpReader {
 public:
  explicit DumpReader(InspectorDump* dump) : dump_(dump) {}

  void Line(std::string_view line, int number) {
    if (line.size() > kLongestLine) return Bad(number, "it is longer than 1 MiB");
    const json object = json::parse(line.begin(), line.end(), nullptr, false);
    if (!object.is_object()) return Bad(number, "it is no JSON object");
    if (const json* header = ObjectIn(object, "header")) TakeHeader(*header);
    if (const json* metadata = ObjectIn(object, "metadata")) TakeMetadata(*metadata);
    bool known = false;
    if (const json* stats = ObjectIn(object, "dump_stats")) {
      TakeStats(*stats);
      known = true;
    }
    if (const json* call = ObjectIn(object, "coll_perf")) {
      if (announced_ > 0) --announced_;
      return TakeCall(*call, number);
    }
    if (ObjectIn(object, "p2p_perf") != nullptr) {
      ++dump_->point_to_point;
      return;
    }
    if (!known && !object.contains("header") && !object.contains("metadata") &&
        !object.contains("proxy_perf")) {
      Bad(number, "it has none of coll_perf, p2p_perf and dump_stats");
    }
  }

  void Finish() { dump_->missing += announced_; }

 private:
  void Bad(int number, const std::string& why) {
    if (dump_->bad_lines++ == 0) {
      dump_->first_bad_line = number;
      dump_->first_bad_why = why;
    }
  }

  void TakeHeader(const json& header) {
    header_ = {};
    header_.id = TextIn(header, "id");
    const double ranks = NumberIn(header, "n_ranks", 0);
    const double nodes = NumberIn(header, "nnodes", 1);
    if (ranks >= 1 && ranks <= kMostRanks) header_.ranks = static_cast<int>(ranks);
    if (nodes >= 1 && nodes <= std::max(ranks, 1.0)) header_.nodes = static_cast<int>(nodes);
    header_.rank = static_cast<int>(std::clamp(NumberIn(header, "rank", -1), -1.0, kMostRanks));
  }

  void TakeMetadata(const json& metadata) {
    if (dump_->format.empty()) {
      dump_->format = TextIn(metadata, "inspector_output_format_version");
    }
    if (dump_->host.empty()) dump_->host = TextIn(metadata, "hostname");
    const double at = NumberIn(metadata, "dump_timestamp_us", 0) * 1e-6;
    if (at > 0 && at < 1e11 && (dump_->started == 0 || at < dump_->started)) dump_->started = at;
  }

  void TakeStats(const json& stats) {
    dump_->missing += announced_;
    announced_ = CountIn(stats, "coll_records");
    for (const auto& [key, value] : stats.items()) {
      const bool of_drops =
          key.find("drop") != std::string::npos || key.find("overwr") != std::string::npos;
      if (of_drops && value.is_number()) dump_->dropped += CountIn(stats, key.c_str());
    }
  }

  void TakeCall(const json& call, int number) {
    InspectorCall taken;
    const Result<std::string> collective = dataset::ParseCollectiveWord(TextIn(call, "coll"));
    if (!collective.ok()) return Bad(number, collective.status().message());
    if (header_.ranks < 1) return Bad(number, "no header says how many ranks there are");
    taken.collective = collective.value();
    taken.communicator = header_.id;
    taken.rank = header_.rank;
    taken.ranks = header_.ranks;
    taken.nodes = header_.nodes;
    taken.sequence = CountIn(call, "coll_sn");
    double bytes = NumberIn(call, "coll_msg_size_bytes", 0);
    // The library counts what one rank holds; nccl-tests counts the larger buffer.
    if (taken.collective == "allgather" || taken.collective == "reducescatter") {
      bytes *= taken.ranks;
    }
    if (!(bytes >= 1) || bytes > kMostBytes) return Bad(number, "its size is out of range");
    taken.bytes = static_cast<uint64_t>(bytes);
    taken.seconds = NumberIn(call, "coll_exec_time_us", 0) * 1e-6;
    if (!(taken.seconds > 0) || taken.seconds > 1e6) return Bad(number, "it has no time");
    taken.gpu_time = TextIn(call, "coll_timing_source") == "kernel_gpu";
    const std::string algorithm = ToLower(TextIn(call, "coll_algo"));
    const std::string protocol = ToLower(TextIn(call, "coll_proto"));
    if (!algorithm.empty()) taken.ran = algorithm + (protocol.empty() ? "" : "/" + protocol);
    if (const json* trace = ObjectIn(call, "event_trace_ts")) {
      taken.start_us = CountIn(*trace, "coll_start_ts");
    }
    dump_->calls.push_back(std::move(taken));
  }

  InspectorDump* dump_;
  Header header_;
  uint64_t announced_ = 0;
};

}  // namespace

bool IsInspectorDump(std::string_view text) {
  const std::string_view start = text.substr(0, 4096);
  const std::string_view first = Trim(start.substr(0, start.find('\n')));
  if (!first.starts_with('{')) return false;
  const auto has = [&](std::string_view word) {
    return first.find(word) != std::string_view::npos;
  };
  return has("\"inspector_output_format_version\"") || has("\"coll_perf\"") ||
         has("\"dump_stats\"") || has("\"p2p_perf\"") || (has("\"header\"") && has("\"n_ranks\""));
}

InspectorDump ParseInspector(std::string_view text) {
  InspectorDump dump;
  DumpReader reader(&dump);
  int number = 0;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = Trim(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    if (!line.empty()) reader.Line(line, number);
  }
  reader.Finish();
  return dump;
}

}  // namespace diapason::traces
