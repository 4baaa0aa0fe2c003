#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/commands/journal/journal.h"
#include "cli/commands/journal/mpi_profile_text.h"
#include "cli/framework/command.h"
#include "cli/framework/json_text.h"
#include "dataset/summary.h"
#include "dataset/words.h"
#include "domain/library_version.h"
#include "job_profile/job_profile.h"
#include "mpi_profile/mpi_profile.h"
#include "mpi_record/reader.h"
#include "report/table.h"

namespace diapason::cli {
namespace {

using dataset::Printable;
using dataset::TimeText;
using job_profile::CallClass;
using job_profile::JobProfile;
using job_profile::RankProfile;
using job_profile::Role;
using job_profile::Source;
using job_profile::Times;
using nlohmann::ordered_json;
using report::Table;

constexpr size_t kMostClasses = 20;
constexpr size_t kMostRanks = 16;
constexpr size_t kMostRoles = 16;
constexpr size_t kLongestNote = 1000;
constexpr char kMethod[] =
    "Exposed is an estimate, from the kernels of the collectives alone: where the next collective "
    "starts later\nwhenever this one takes longer, the work between them waited for it. A range "
    "says what cannot be told.\n";

std::string CollectiveText(uint8_t collective) {
  return collective == journal::kNamelessCollective
             ? "?"
             : std::string(CollectiveName(static_cast<Collective>(collective)));
}

std::string SizesText(const CallClass& one) {
  return one.least_bytes == one.most_bytes
             ? AboutBytes(one.most_bytes)
             : Format("{} to {}", AboutBytes(one.least_bytes), AboutBytes(one.most_bytes));
}

// "7.02 ms (6.51 ms to 7.60 ms)".
std::string ExposedText(const Times& times) {
  if (times.total <= 0) return "-";
  return Format("{} ({} to {})", TimeText(times.exposed), TimeText(times.exposed_low),
                TimeText(times.exposed_high));
}

std::string UntriedText(const CallClass& one) {
  std::vector<std::string> reasons;
  for (const auto& [count, why] :
       {std::pair{one.captured, "captured"}, std::pair{one.bypassed, "bypassed"},
        std::pair{one.in_groups, "in groups"}, std::pair{one.broadcasts, "broadcasts"}}) {
    if (count > 0) reasons.push_back(Format("{} {}", count, why));
  }
  return Join(reasons, ", ");
}

void PrintLibraries(const JobProfile& profile) {
  std::vector<std::string> seen;
  for (const Role& role : profile.roles) {
    const std::string version =
        role.library_version == 0 ? "of unknown version" : LibraryVersionText(role.library_version);
    const std::string text = Format("{} {}", std::string(LibraryTitle(role.library)), version);
    if (std::find(seen.begin(), seen.end(), text) == seen.end()) seen.push_back(text);
  }
  PrintOut("library: {}\n", Join(seen, ", "));
}

void PrintIterations(const JobProfile& profile) {
  if (profile.iteration <= 0) return;
  PrintOut("iterations: {} timed, {} to {} (10 to 90 %); {}\n", profile.iterations,
           TimeText(profile.iteration_low), TimeText(profile.iteration_high),
           profile.source == Source::kSteps   ? "as the program marked them"
           : profile.source == Source::kCalls ? "none was found: so many equal calls together"
                                              : "found in the order of calls");
  if (profile.ranks.size() > 1) {
    PrintOut("slowest: {}, {}\n", Printable(profile.slowest_rank),
             TimeText(profile.slowest_iteration));
  }
  const RankProfile* shown = nullptr;
  for (const RankProfile& rank : profile.ranks) {
    if (rank.iterations > 0 && (shown == nullptr || rank.iterations > shown->iterations)) {
      shown = &rank;
    }
  }
  if (shown->longer > 0) {
    PrintOut("longer iterations: {} of {}, {}\n", shown->longer, shown->iterations,
             TimeText(shown->longer_length));
  }
  if (shown->parts > 1) {
    PrintOut("an iteration has {} parts that are alike: layers, or accumulated gradients\n",
             shown->parts);
  }
  PrintOut("{}: {:.0f} calls each; not part of them: {} of start-up, {} others\n",
           Printable(shown->label), shown->calls_per_iteration, Count(shown->startup_calls, "call"),
           shown->other_calls);
}

void PrintTimes(const JobProfile& profile) {
  const Times& times = profile.times;
  if (times.total <= 0) return;
  PrintOut("collectives: {} of an iteration ({:.0f} %); exposed {}, hidden {}\n",
           TimeText(times.total), 100 * times.total / profile.iteration, ExposedText(times),
           TimeText(times.Hidden()));
  if (profile.hidden_by_host > 0.02 * times.total) {
    PrintOut(
        "in {} of it the next call was not launched yet: faster collectives would wait for the "
        "host\n",
        TimeText(profile.hidden_by_host));
  }
  if (times.slowed > 0.02 * times.total) {
    PrintOut("hidden collectives slow the work beside them by about {} (estimate)\n",
             TimeText(times.slowed));
  }
  if (times.waiting > 0.02 * times.total) {
    PrintOut("waiting for slower ranks: {} of the collective time\n", TimeText(times.waiting));
  }
}

void PrintUntried(const JobProfile& profile) {
  if (profile.untried_calls == 0) return;
  PrintOut("cannot be tried in the running job: {} of {} calls", profile.untried_calls,
           profile.calls);
  if (profile.untried_seconds > 0) {
    PrintOut(", {:.0f} % of the collective time",
             100 * profile.untried_seconds / profile.times.total);
  }
  PrintOut("\n");
}

void PrintRoles(const JobProfile& profile) {
  using Align = Table::Align;
  Table table({"communicator", "ranks", "nodes", "created", "ended", "calls"});
  table.SetAlign(
      {Align::kLeft, Align::kRight, Align::kRight, Align::kRight, Align::kRight, Align::kRight});
  size_t shown = 0;
  for (const Role& role : profile.roles) {
    if (++shown > kMostRoles) break;
    table.Add({Format("{}{}", shown, role.name.empty() ? "" : " (" + role.name + ")"),
               Format("{}", role.shape.ranks), Format("{}", role.shape.nodes),
               Format("{}", role.communicators), Format("{}", role.ended),
               Format("{}", role.calls)});
  }
  PrintOut("\n{}", table.Text());
  if (profile.roles.size() > kMostRoles) {
    PrintOut("and {} more\n", profile.roles.size() - kMostRoles);
  }
}

void PrintClasses(const JobProfile& profile) {
  using Align = Table::Align;
  Table table({"comm", "collective", "size", "calls", "per iteration", "time", "share", "exposed",
               "cannot be tried"});
  table.SetAlign({Align::kRight, Align::kLeft, Align::kRight, Align::kRight, Align::kRight,
                  Align::kRight, Align::kRight, Align::kRight, Align::kLeft});
  size_t shown = 0;
  for (const CallClass& one : profile.classes) {
    if (++shown > kMostClasses) break;
    const bool timed = one.times.total > 0;
    table.Add({Format("{}", one.role + 1), CollectiveText(one.collective), SizesText(one),
               Format("{}", one.calls),
               profile.iteration > 0 ? Format("{:.4g}", one.calls_per_iteration) : "-",
               timed ? TimeText(one.times.total) : "-",
               timed ? Format("{:.0f} %", 100 * one.times.total / profile.times.total) : "-",
               ExposedText(one.times), UntriedText(one)});
  }
  PrintOut("\n{}", table.Text());
  if (profile.classes.size() > kMostClasses) {
    PrintOut("and {} more\n", profile.classes.size() - kMostClasses);
  }
}

void PrintRanks(const JobProfile& profile) {
  if (profile.ranks.size() < 2 || profile.iteration <= 0) return;
  using Align = Table::Align;
  Table table({"rank", "iterations", "iteration", "collectives", "exposed", "waiting"});
  table.SetAlign(
      {Align::kLeft, Align::kRight, Align::kRight, Align::kRight, Align::kRight, Align::kRight});
  size_t shown = 0;
  for (const RankProfile& rank : profile.ranks) {
    if (++shown > kMostRanks) break;
    const bool timed = rank.times.total > 0;
    table.Add({rank.label, Format("{}", rank.iterations),
               rank.iterations > 0 ? TimeText(rank.iteration) : "-",
               timed ? TimeText(rank.times.total) : "-", timed ? TimeText(rank.times.exposed) : "-",
               timed ? TimeText(rank.times.waiting) : "-"});
  }
  PrintOut("\n{}", table.Text());
  if (profile.ranks.size() > kMostRanks) {
    PrintOut("and {} more\n", profile.ranks.size() - kMostRanks);
  }
}

void Print(const JobProfile& profile) {
  PrintOut("{}\n", profile.Headline());
  PrintLibraries(profile);
  PrintIterations(profile);
  PrintTimes(profile);
  PrintUntried(profile);
  PrintRoles(profile);
  PrintClasses(profile);
  PrintRanks(profile);
  if (profile.times.total > 0) PrintOut("\n{}", kMethod);
  for (const std::string& note : profile.notes)
    PrintOut("note: {}\n", Printable(note, kLongestNote));
}

const char* SourceName(Source source) {
  switch (source) {
    case Source::kNone:
      return "none";
    case Source::kSteps:
      return "steps";
    case Source::kOrder:
      return "order";
    case Source::kCalls:
      return "calls";
  }
  return "none";
}

ordered_json TimesJson(const Times& times) {
  return {{"us", times.total * 1e6},
          {"exposed_us", times.exposed * 1e6},
          {"exposed_low_us", times.exposed_low * 1e6},
          {"exposed_high_us", times.exposed_high * 1e6},
          {"hidden_us", times.Hidden() * 1e6},
          {"slowed_us", times.slowed * 1e6},
          {"waiting_us", times.waiting * 1e6}};
}

ordered_json ClassJson(const CallClass& one) {
  ordered_json json = {{"communicator", one.role},
                       {"collective", CollectiveText(one.collective)},
                       {"least_bytes", one.least_bytes},
                       {"most_bytes", one.most_bytes},
                       {"calls", one.calls},
                       {"calls_per_iteration", one.calls_per_iteration},
                       {"captured", one.captured},
                       {"bypassed", one.bypassed},
                       {"in_groups", one.in_groups},
                       {"broadcasts", one.broadcasts}};
  json.update(TimesJson(one.times));
  return json;
}

ordered_json RankJson(const RankProfile& rank) {
  ordered_json json = {{"label", rank.label},
                       {"rank", rank.rank},
                       {"calls", rank.calls},
                       {"timed_calls", rank.timed_calls},
                       {"startup_calls", rank.startup_calls},
                       {"other_calls", rank.other_calls},
                       {"iterations_by", SourceName(rank.source)},
                       {"clock", rank.gpu_clock ? "gpu" : "host"},
                       {"iterations", rank.iterations},
                       {"calls_per_iteration", rank.calls_per_iteration},
                       {"parts", rank.parts},
                       {"iteration_us", rank.iteration * 1e6},
                       {"iteration_low_us", rank.iteration_low * 1e6},
                       {"iteration_high_us", rank.iteration_high * 1e6},
                       {"longer_iterations", rank.longer},
                       {"longer_us", rank.longer_length * 1e6},
                       {"hidden_by_host_us", rank.hidden_by_host * 1e6},
                       {"complete", rank.complete}};
  json["collectives"] = TimesJson(rank.times);
  return json;
}

ordered_json ProfileJson(const JobProfile& profile) {
  ordered_json roles = ordered_json::array();
  for (const Role& role : profile.roles) {
    roles.push_back({{"name", role.name},
                     {"library", LibraryName(role.library)},
                     {"library_version", role.library_version},
                     {"nodes", role.shape.nodes},
                     {"ranks", role.shape.ranks},
                     {"created", role.communicators},
                     {"ended", role.ended},
                     {"calls", role.calls}});
  }
  ordered_json classes = ordered_json::array();
  for (const CallClass& one : profile.classes) classes.push_back(ClassJson(one));
  ordered_json ranks = ordered_json::array();
  for (const RankProfile& rank : profile.ranks) ranks.push_back(RankJson(rank));
  return {{"headline", profile.Headline()},
          {"iterations_by", SourceName(profile.source)},
          {"iterations", profile.iterations},
          {"iteration_us", profile.iteration * 1e6},
          {"iteration_low_us", profile.iteration_low * 1e6},
          {"iteration_high_us", profile.iteration_high * 1e6},
          {"slowest_rank", profile.slowest_rank},
          {"slowest_iteration_us", profile.slowest_iteration * 1e6},
          {"has_times", profile.has_times},
          {"exposed_is_an_estimate", true},
          {"collectives", TimesJson(profile.times)},
          {"hidden_by_host_us", profile.hidden_by_host * 1e6},
          {"calls", profile.calls},
          {"untimed_calls", profile.untimed_calls},
          {"untimed_calls_per_iteration", profile.untimed_per_iteration},
          {"untried_calls", profile.untried_calls},
          {"untried_us", profile.untried_seconds * 1e6},
          {"missing_ranks", profile.missing_ranks},
          {"dropped", profile.dropped},
          {"bad_lines", profile.bad_lines},
          {"communicators", std::move(roles)},
          {"classes", std::move(classes)},
          {"ranks", std::move(ranks)},
          {"notes", profile.notes}};
}

Result<JobProfile> Finish(job_profile::ProfileMaker* maker, const std::string& side) {
  if (side.empty()) return maker->Finish();
  ASSIGN_OR_RETURN(job_profile::SidedProfiles sides, maker->FinishSides());
  return std::move(side == "default" ? sides.by_default : sides.by_policy);
}

// Of the recordings of an MPI program.
Result<int> RunMpiProfile(const JournalProfile& asked) {
  if (!asked.side.empty()) {
    return Invalid("recordings of MPI calls have no turns: leave --side out");
  }
  for (const std::string& file : asked.files) {
    if (mpi_record::IsRecordingFile(file) || !FileExists(file)) continue;
    return Invalid("'" + file +
                   "' is no recording of MPI calls, and others are: a profile is of one program");
  }
  ASSIGN_OR_RETURN(const mpi_profile::MpiProfile profile, mpi_profile::ReadProfile(asked.files));
  PrintOut("{}", asked.json ? MpiProfileJson(profile) + "\n" : MpiProfileText(profile));
  return kExitFine;
}

}  // namespace

Result<int> RunJournalProfile(const JournalProfile& asked) {
  if (std::any_of(asked.files.begin(), asked.files.end(), mpi_record::IsRecordingFile)) {
    return RunMpiProfile(asked);
  }
  job_profile::ProfileMaker maker;
  std::vector<std::string> unread;
  for (const std::string& file : asked.files) {
    // Invalid lines and dropped records are part of the profile. A rank that was killed early may
    // leave a file without a line: the others still have something to say.
    const Result<journal::JournalContents> read = journal::ReadJournal(file);
    if (!read.ok() && asked.files.size() == 1) return read.status();
    if (!read.ok()) {
      unread.push_back(read.status().message());
      continue;
    }
    maker.Add(file, read.value());
  }
  Result<JobProfile> made = Finish(&maker, asked.side);
  if (!made.ok() && !unread.empty()) return Invalid(unread[0]);
  RETURN_IF_ERROR(made.status());
  JobProfile profile = std::move(made).value();
  for (const std::string& why : unread) profile.notes.push_back("left out: " + why);
  if (asked.json) {
    PrintOut("{}\n", JsonText(ProfileJson(profile)));
  } else {
    Print(profile);
  }
  return kExitFine;
}

}  // namespace diapason::cli
