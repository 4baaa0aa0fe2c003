// Dumps of NCCL Inspector as samples: the ranks of one job are put together.
#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "base/encoding.h"
#include "base/text.h"
#include "dataset/words.h"
#include "traces/inspector.h"

namespace diapason::traces {
namespace {

using dataset::Point;

// One call of one communicator, over its ranks.
struct Joined {
  std::set<int> ranks;
  InspectorCall slowest;
};
using CallKey = std::tuple<std::string, std::string, uint64_t, uint64_t>;

}  // namespace

struct InspectorImport::State {
  std::map<CallKey, Joined> calls;
  std::map<std::string, std::set<int>> ranks;  // that have a dump, by communicator
  std::map<Point, std::set<std::string>> ran_words;
  std::map<Point, std::vector<std::string>> ran;
  std::set<std::string> hosts;
  std::string format;
  std::string first_name;
  std::string content;  // digests of the files
  size_t files = 0;
  double started = 0;
  size_t rows = 0;
  size_t twice = 0;
  size_t bad_lines = 0;
  std::string first_bad;
  size_t point_to_point = 0;
  uint64_t dropped = 0;
  uint64_t missing = 0;
  size_t host_times = 0;
  size_t partly = 0;

  void AddMessages(dataset::Import* import) const;
};

InspectorImport::InspectorImport() : state_(std::make_unique<State>()) {}
InspectorImport::~InspectorImport() = default;

const std::map<Point, std::vector<std::string>>& InspectorImport::ran() const {
  return state_->ran;
}

void InspectorImport::Add(std::string_view text, const std::string& name) {
  State& state = *state_;
  const InspectorDump dump = ParseInspector(text);
  if (state.files++ == 0) state.first_name = name;
  state.content += Format("{:016x}", Fnv1a64(text));
  if (state.format.empty()) state.format = dump.format;
  if (!dump.host.empty()) state.hosts.insert(dump.host);
  if (dump.started > 0 && (state.started == 0 || dump.started < state.started)) {
    state.started = dump.started;
  }
  if (state.bad_lines == 0 && dump.bad_lines > 0) {
    state.first_bad = Format("'{}' line {}: {}", dataset::Printable(name), dump.first_bad_line,
                             dump.first_bad_why);
  }
  state.bad_lines += dump.bad_lines;
  state.point_to_point += dump.point_to_point;
  state.dropped += dump.dropped;
  state.missing += dump.missing;
  for (const InspectorCall& call : dump.calls) {
    ++state.rows;
    if (!call.gpu_time) ++state.host_times;
    state.ranks[call.communicator].insert(call.rank);
    Joined& joined = state.calls[{call.communicator, call.collective, call.sequence, call.bytes}];
    if (!joined.ranks.insert(call.rank).second) {
      // Repeated dumps can hold one record several times.
      ++state.twice;
      continue;
    }
    if (call.seconds > joined.slowest.seconds) joined.slowest = call;
  }
}

Result<dataset::Import> InspectorImport::Finish() {
  State& state = *state_;
  dataset::Import import;
  import.format = "NCCL Inspector dump";
  import.rows = state.rows;
  dataset::WholeRun whole;
  std::map<Point, int> rounds;
  std::vector<const Joined*> order;
  for (const auto& [key, joined] : state.calls) {
    if (joined.ranks.size() < state.ranks[std::get<0>(key)].size()) {
      ++state.partly;
      continue;
    }
    order.push_back(&joined);
  }
  std::stable_sort(order.begin(), order.end(), [](const Joined* a, const Joined* b) {
    return std::tie(a->slowest.start_us, a->slowest.sequence) <
           std::tie(b->slowest.start_us, b->slowest.sequence);
  });
  for (const Joined* joined : order) {
    const InspectorCall& call = joined->slowest;
    ASSIGN_OR_RETURN(Point point, dataset::PointFromOptions({}, call.collective));
    point.bytes = call.bytes;
    point.ranks = call.ranks;
    point.nodes = call.nodes;
    if (!call.ran.empty()) state.ran_words[point].insert(call.ran);
    dataset::Sample sample;
    sample.seconds = call.seconds;
    sample.round = rounds[point]++;
    sample.at = static_cast<double>(call.start_us) * 1e-6;
    sample.point = std::move(point);
    whole.samples.push_back(std::move(sample));
  }
  for (const auto& [point, words] : state.ran_words) {
    state.ran[point] = {words.begin(), words.end()};
  }
  if (whole.samples.empty()) {
    return Invalid("'" + dataset::Printable(state.first_name) +
                   "': no collective of the dump has a time on all ranks" +
                   (state.first_bad.empty() ? "" : "; " + state.first_bad));
  }
  whole.run.id = dataset::ImportId(state.content, "inspector", 0);
  whole.run.source = "import";
  whole.run.origin =
      state.first_name + (state.files > 1 ? Format(" and {} more", state.files - 1) : "");
  whole.run.started = state.started;
  whole.run.state = dataset::SampleRun::State::kDone;
  whole.run.machine.library = "nccl";
  whole.run.machine.hosts = Join({state.hosts.begin(), state.hosts.end()}, ",");
  whole.run.machine.tool = "NCCL Inspector" + (state.format.empty() ? "" : " " + state.format);
  state.AddMessages(&import);
  import.runs.push_back(std::move(whole));
  return import;
}

void InspectorImport::State::AddMessages(dataset::Import* import) const {
  const auto say = [&](uint64_t count, const char* noun, const std::string& rest) {
    if (count > 0) import->messages.push_back(Count(count, noun) + rest);
  };
  say(bad_lines, "line", " could not be read, the first is " + first_bad);
  say(missing, "record", " announced by the dumps, and not in the files: they are cut");
  say(dropped, "record", " dropped by NCCL Inspector while the job ran");
  say(partly, "call", " left out: not recorded on every rank that has a dump");
  say(twice, "record", " found twice, and counted once");
  say(point_to_point, "record", " of send and receive left out");
  say(host_times, "record", " timed by the host, not by the GPU");
  import->messages.emplace_back("NCCL Inspector does not record the data type: taken as f32");
}

}  // namespace diapason::traces
