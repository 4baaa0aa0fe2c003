#include "dataset/import_journal.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "base/encoding.h"
#include "base/text.h"
#include "base/units.h"
#include "dataset/words.h"
#include "domain/library_version.h"
#include "domain/schedule.h"
#include "journal/joined.h"
#include "journal/match.h"

namespace diapason::dataset {
namespace {

using journal::Matcher;
using journal::RecordKind;

// Group, collective, size band.
using ContextKey = std::tuple<size_t, uint8_t, int>;

// One rank's record of one run.
struct Timed {
  size_t group = 0;
  uint8_t collective = 0;
  bool captured = false;
  uint64_t sequence = 0;
  size_t member = 0;
  uint64_t bytes = 0;
  uint64_t time_ns = 0;
  double seconds = 0;
  Config config;
  bool known = false;     // its decision is in the journal, and says
  bool standard = false;  // that nothing was asked for,
  bool narrowed = false;  // that channels were asked for,
  bool warm_up = false;   // that it does not count

  auto Call() const { return std::tie(group, collective, captured, sequence); }
};

struct Block {
  size_t member = 0;
  int rank = -1;
  journal::JournalRecord record;
};

// The library's time stamp is taken when the first thread of a block is done; in a tree the other
// threads still wait for the downward phase.
bool StampEndsEarly(const journal::JournalRecord& record) {
  return record.algorithm == kTree || record.algorithm == kNvlsTree;
}

}  // namespace

struct JournalImport::State {
  ImportOptions options;
  Matcher matcher;
  std::vector<std::string> names;
  std::vector<uint64_t> digests;
  std::vector<Timed> timed;
  std::map<ContextKey, std::vector<Block>> blocks;
  std::map<ContextKey, std::set<uint64_t>> sizes;  // sizes asked about, two at most
  std::map<size_t, std::set<size_t>> timing;       // members with times, by group
  std::string tool;
  uint64_t started_ns = 0;
  size_t bad_lines = 0;
  uint64_t dropped = 0;
  // Omitted, for the messages.
  size_t early = 0;
  size_t partly = 0;
  size_t differing = 0;
  size_t warm_ups = 0;
  size_t nameless = 0;
  size_t thinned = 0;
  size_t vague = 0;

  Result<WholeRun> ImportGroup(size_t group, std::vector<Timed>::const_iterator first,
                               std::vector<Timed>::const_iterator last);
  Result<Point> PointOf(const Matcher::Group& group, uint8_t collective, uint64_t bytes,
                        const Config& config) const;
  Status AddRewards(size_t group, const std::set<ContextKey>& measured, WholeRun* run);
  SampleRun RunOf(size_t group) const;
  void Thin(std::vector<Sample>* samples);
  void AddMessages(Import* import) const;
};

JournalImport::JournalImport(ImportOptions options) : state_(std::make_unique<State>()) {
  state_->options = std::move(options);
}
JournalImport::~JournalImport() = default;

Status JournalImport::Add(std::string_view text, const std::string& name) {
  ASSIGN_OR_RETURN(journal::JournalContents read, journal::ParseJournal(text, Printable(name)));
  const journal::JournalContents& contents = read;
  State& state = *state_;
  const uint64_t digest = Fnv1a64(text);
  if (std::find(state.digests.begin(), state.digests.end(), digest) != state.digests.end()) {
    return Invalid("'" + Printable(name) + "' is there twice");
  }
  state.digests.push_back(digest);
  state.names.push_back(name);
  state.bad_lines += contents.bad_lines;
  state.dropped += contents.dropped;
  if (state.tool.empty()) state.tool = "diapason " + contents.diapason;
  if (contents.started_ns > 0 &&
      (state.started_ns == 0 || contents.started_ns < state.started_ns)) {
    state.started_ns = contents.started_ns;
  }
  const std::vector<Matcher::Place> places = state.matcher.Add(name, contents);
  const std::vector<uint32_t> partners = journal::JoinRuns(contents);
  for (size_t i = 0; i < contents.records.size(); ++i) {
    const journal::JournalRecord& record = contents.records[i];
    const size_t at = contents.by_number.find(record.communicator)->second;
    const Matcher::Place& place = places[at];
    const ContextKey context{place.group, record.collective, SizeBand(record.bytes)};
    if (record.kind == RecordKind::kDecision) {
      std::set<uint64_t>& sizes = state.sizes[context];
      if (sizes.size() < 2) sizes.insert(record.bytes);
    } else if (record.kind == RecordKind::kReward && record.seconds > 0) {
      state.blocks[context].push_back({place.member, contents.communicators[at].rank, record});
    } else if (record.kind == RecordKind::kRan && record.seconds > 0) {
      if (StampEndsEarly(record)) {
        ++state.early;
        continue;
      }
      Timed timed{place.group,  record.collective, record.captured, record.sequence, place.member,
                  record.bytes, record.time_ns,    record.seconds,  ConfigOf(record)};
      if (partners[i] != journal::kNoPartner) {
        const journal::JournalRecord& decision = contents.records[partners[i]];
        const Config asked = AskedOf(decision);
        timed.known = true;
        timed.standard = asked.IsDefault();
        timed.narrowed = asked.channels > 0;
        timed.warm_up = decision.reason == Reason::kWarmUp;
      }
      state.timing[place.group].insert(place.member);
      state.timed.push_back(timed);
    }
  }
  return {};
}

Result<Import> JournalImport::Finish() {
  State& state = *state_;
  Import import;
  import.format = state.names.size() == 1 ? "journal" : Count(state.names.size(), "journal");
  std::stable_sort(state.timed.begin(), state.timed.end(), [](const Timed& a, const Timed& b) {
    return std::tie(a.group, a.collective, a.captured, a.sequence, a.member) <
           std::tie(b.group, b.collective, b.captured, b.sequence, b.member);
  });
  auto first = state.timed.cbegin();
  for (size_t group = 0; group < state.matcher.groups().size(); ++group) {
    const auto last = std::find_if(first, state.timed.cend(),
                                   [&](const Timed& timed) { return timed.group != group; });
    ASSIGN_OR_RETURN(WholeRun run, state.ImportGroup(group, first, last));
    first = last;
    if (run.samples.empty()) continue;
    import.rows += run.samples.size();
    state.Thin(&run.samples);
    import.runs.push_back(std::move(run));
  }
  if (import.runs.empty()) {
    return Invalid(
        "'" + Printable(state.names.empty() ? "" : state.names[0]) + "'" +
        (state.names.size() > 1 ? Format(" and {} more", state.names.size() - 1) : "") +
        ": no call was timed on all ranks, and nothing was learned: the plugin's profiler half has "
        "to be loaded, and told to time calls");
  }
  state.AddMessages(&import);
  return import;
}

Result<Point> JournalImport::State::PointOf(const Matcher::Group& group, uint8_t collective,
                                            uint64_t bytes, const Config& config) const {
  const auto number = static_cast<Collective>(collective);
  ASSIGN_OR_RETURN(Point made, PointFromOptions(options, std::string(CollectiveName(number))));
  Point& point = made;
  point.bytes = bytes;
  point.nodes = static_cast<int>(group.shape.nodes);
  point.ranks = static_cast<int>(group.shape.ranks);
  if (config.algorithm != kKeep) {
    point.algorithm = AlgorithmName(group.library, number, config.algorithm);
  }
  if (config.protocol != kKeep) point.protocol = ProtocolName(group.library, config.protocol);
  point.channels = std::max(config.channels, 0);
  RETURN_IF_ERROR(AgreesWith(options, point));
  return made;
}

SampleRun JournalImport::State::RunOf(size_t index) const {
  const Matcher::Group& group = matcher.groups()[index];
  SampleRun run;
  std::vector<uint64_t> sorted = digests;
  std::sort(sorted.begin(), sorted.end());
  std::string content;
  for (const uint64_t digest : sorted) {
    content += Format("{:016x}", digest);
  }
  // The journals may come in any order; a communicator's run has the same id.
  run.id = ImportId(content,
                    Format("journal,{:x},{},{},{},", group.id, group.generation, group.shape.nodes,
                           group.shape.ranks) +
                        OptionsText(options),
                    0);
  run.source = "import";
  run.origin = names[0] + (names.size() > 1 ? Format(" and {} more", names.size() - 1) : "");
  run.started = static_cast<double>(started_ns) * 1e-9;
  run.plan = "journal of " + group.Text();
  run.state = SampleRun::State::kDone;
  std::set<std::string> hosts;
  for (const Matcher::Member& member : group.members) {
    hosts.insert(member.host);
    if (!member.ended) run.state = SampleRun::State::kInterrupted;
  }
  MachineInfo& machine = run.machine;
  machine.library = LibraryName(group.library);
  machine.library_version = LibraryVersionText(group.library_version);
  machine.gpu = options.gpu;
  machine.topology = Count(static_cast<size_t>(group.shape.nodes), "node") + ", " +
                     Count(static_cast<size_t>(group.shape.ranks), "rank");
  machine.hosts = Join({hosts.begin(), hosts.end()}, ",");
  machine.tool = std::string(Trim(tool));
  return run;
}

Result<WholeRun> JournalImport::State::ImportGroup(size_t index,
                                                   std::vector<Timed>::const_iterator first,
                                                   std::vector<Timed>::const_iterator last) {
  const Matcher::Group& group = matcher.groups()[index];
  WholeRun run;
  run.run = RunOf(index);
  if (group.shape.nodes < 1 || group.shape.ranks < group.shape.nodes ||
      group.shape.ranks > 10'000'000) {
    return Invalid(group.Text() + ": its nodes or ranks are out of range");
  }
  if (!options.library.empty() && options.library != run.run.machine.library) {
    return Invalid(
        Format("the journal says {}, --library says {}", run.run.machine.library, options.library));
  }
  const auto found = timing.find(index);
  const size_t wanted = found == timing.end() ? 0 : found->second.size();
  std::map<Point, int> rounds;
  std::set<ContextKey> measured;
  while (first != last) {
    // The ranks' parts of one call; of two of one rank the later one counts.
    std::vector<const Timed*> parts;
    for (; first != last && (parts.empty() || first->Call() == parts[0]->Call()); ++first) {
      if (!parts.empty() && parts.back()->member == first->member) parts.pop_back();
      parts.push_back(&*first);
    }
    const Timed& one = *parts[0];
    const Timed* decided = parts[0];
    const Timed* slowest = parts[0];
    bool same = true;
    bool warm_up = false;
    for (const Timed* part : parts) {
      if (!decided->known && part->known) decided = part;
      if (part->seconds > slowest->seconds) slowest = part;
      same &= part->config == one.config && part->bytes == one.bytes;
      warm_up |= part->warm_up;
    }
    if (parts.size() < wanted) {
      ++partly;
    } else if (!same) {
      ++differing;
    } else if (warm_up) {
      ++warm_ups;
    } else if (one.collective >= kCollectiveCount || one.config.algorithm == kKeep ||
               one.config.protocol == kKeep) {
      ++nameless;
    } else {
      Config config = one.config;
      if (decided->known && decided->standard) config = {};
      // A channel count chosen by the library differs from the same count set explicitly.
      if (decided->known && !decided->narrowed) config.channels = 0;
      ASSIGN_OR_RETURN(Point point, PointOf(group, one.collective, one.bytes, config));
      Sample sample;
      sample.point = std::move(point);
      sample.seconds = slowest->seconds;
      sample.round = rounds[sample.point]++;
      sample.at = static_cast<double>(slowest->time_ns) * 1e-9;
      run.samples.push_back(std::move(sample));
      measured.insert({index, one.collective, SizeBand(one.bytes)});
    }
  }
  RETURN_IF_ERROR(AddRewards(index, measured, &run));
  return run;
}

Status JournalImport::State::AddRewards(size_t index, const std::set<ContextKey>& measured,
                                        WholeRun* run) {
  const Matcher::Group& group = matcher.groups()[index];
  for (const auto& [context, list] : blocks) {
    if (std::get<0>(context) != index || measured.contains(context)) continue;
    const std::set<uint64_t>& asked = sizes[context];
    if (asked.size() != 1) {
      vague += list.size();
      continue;
    }
    // All ranks that have it agree.
    const size_t teller =
        std::min_element(list.begin(), list.end(), [](const Block& a, const Block& b) {
          return std::tie(a.rank, a.member) < std::tie(b.rank, b.member);
        })->member;
    std::map<Point, int> rounds;
    for (const Block& block : list) {
      if (block.member != teller) continue;
      ASSIGN_OR_RETURN(Point point, PointOf(group, std::get<1>(context), *asked.begin(),
                                            ConfigOf(block.record)));
      if (block.record.iteration) {
        point.kind = Point::Kind::kIteration;
        point.workload = options.workload;
      }
      Sample sample;
      sample.point = std::move(point);
      sample.seconds = block.record.seconds;
      sample.iterations = std::max<int64_t>(block.record.samples, 1);
      sample.round = rounds[sample.point]++;
      sample.at = static_cast<double>(block.record.time_ns) * 1e-9;
      run->samples.push_back(std::move(sample));
    }
  }
  return {};
}

void JournalImport::State::Thin(std::vector<Sample>* samples) {
  std::map<Point, size_t> counts;
  for (const Sample& sample : *samples) ++counts[sample.point];
  std::map<Point, size_t> seen;
  const size_t before = samples->size();
  std::erase_if(*samples, [&](Sample& sample) {
    const size_t count = counts[sample.point];
    const size_t at = seen[sample.point]++;
    if (count <= kMostSamples) return false;
    // Kept when the due number grows by one.
    const size_t due = at * kMostSamples / count;
    if (at > 0 && (at - 1) * kMostSamples / count == due) return true;
    sample.round = static_cast<int>(due);
    return false;
  });
  thinned += before - samples->size();
}

void JournalImport::State::AddMessages(Import* import) const {
  const auto say = [&](size_t count, const char* noun, const char* rest) {
    if (count > 0) import->messages.push_back(Count(count, noun) + rest);
  };
  // Rewards already cover all ranks.
  for (const auto& [index, members] : timing) {
    const Matcher::Group& group = matcher.groups()[index];
    if (static_cast<int64_t>(group.members.size()) >= group.shape.ranks) continue;
    import->messages.push_back(
        Format("{} has {} ranks, and journals of {}: a slower rank may be missing", group.Text(),
               group.shape.ranks, group.members.size()));
  }
  say(early, "run",
      " left out: a tree's kernel is stamped before the data has come down, so its time is too "
      "short");
  say(partly, "run", " left out: not timed on every rank");
  say(differing, "run", " left out: the ranks differ; `diapason journal check` says how");
  say(warm_ups, "run", " left out: a first use, which does not count");
  say(nameless, "run", " left out: no name is known for what ran");
  say(vague, "reward", " left out: calls of several sizes are behind it");
  say(thinned, "sample", " left out: more than 1000 of one configuration say no more");
  say(bad_lines, "line", " could not be read");
  say(dropped, "record", " dropped while the job ran");
  if (options.type.empty()) {
    import->messages.emplace_back("journals do not say the data type: taken as f32; --datatype");
  }
}

}  // namespace diapason::dataset
