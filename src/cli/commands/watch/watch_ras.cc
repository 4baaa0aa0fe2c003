#include <algorithm>

#include "base/printable.h"
#include "base/text.h"
#include "cli/commands/watch/watch.h"
#include "report/table.h"

namespace diapason::cli {
namespace {

using watch::CommunicatorView;
using watch::JobProcess;
using watch::RankView;
using watch::RasAbsence;
using watch::RasView;
using Align = report::Table::Align;

constexpr size_t kShownCommunicators = 4;
constexpr size_t kShownRanks = 64;
constexpr size_t kShownJobs = 8;

// The collectives that a rank of the communicator has launched.
std::vector<size_t> UsedFunctions(const CommunicatorView& communicator, size_t functions) {
  std::vector<size_t> used;
  for (size_t f = 0; f < functions; ++f) {
    const bool any = std::any_of(communicator.ranks.begin(), communicator.ranks.end(),
                                 [f](const RankView& rank) {
                                   return f < rank.counts.size() && rank.counts[f] != 0 &&
                                          rank.counts[f] != watch::kUnknownCount;
                                 });
    if (any) used.push_back(f);
  }
  return used;
}

std::string Remark(const RankView& rank) {
  std::vector<std::string> parts;
  if (rank.blamed) parts.emplace_back("the others wait for it");
  if (rank.absence == RasAbsence::kLeft) parts.emplace_back("no longer a member");
  if (rank.absence == RasAbsence::kDead) parts.emplace_back("considered dead by RAS");
  if (rank.absence == RasAbsence::kUnresponsive) {
    parts.push_back(Format("no answer to RAS for {:.0f} s", rank.absent_s));
  }
  if (rank.async_error != 0) parts.push_back(Format("error {}", rank.async_error));
  return Join(parts, ", ");
}

std::string CommunicatorText(const CommunicatorView& communicator, const RasView& ras) {
  std::string text = Format(
      "{}, {}", communicator.hash.empty() ? "communicator" : "communicator " + communicator.hash,
      Count(static_cast<size_t>(communicator.size), "rank"));
  if (communicator.ranks.empty()) return text + ": RAS names ranks only where they differ\n";
  text += "\n";
  const std::vector<size_t> used = UsedFunctions(communicator, ras.functions.size());
  std::vector<std::string> titles = {"rank", "host", "process", "state"};
  std::vector<Align> aligns = {Align::kRight, Align::kLeft, Align::kRight, Align::kLeft};
  for (const size_t f : used) {
    titles.push_back(ras.functions[f]);
    aligns.push_back(Align::kRight);
  }
  titles.emplace_back("");
  report::Table table(titles);
  table.SetAlign(aligns);
  for (size_t i = 0; i < communicator.ranks.size() && i < kShownRanks; ++i) {
    const RankView& rank = communicator.ranks[i];
    const int pid = rank.local_pid != 0 ? static_cast<int>(rank.local_pid) : rank.pid;
    std::vector<std::string> cells = {Format("{}", rank.rank), rank.host.substr(0, 64),
                                      pid < 0 ? "-" : Format("{}", pid),
                                      watch::StateName(rank.state)};
    for (const size_t f : used) {
      const bool known = f < rank.counts.size() && rank.counts[f] != watch::kUnknownCount;
      cells.push_back(known ? Format("{}", rank.counts[f]) : "-");
    }
    cells.push_back(Remark(rank));
    table.Add(cells);
  }
  text += table.Text();
  if (communicator.ranks.size() > kShownRanks) {
    text += Format("and {} more\n", communicator.ranks.size() - kShownRanks);
  }
  return text;
}

}  // namespace

std::string RasText(const RasView& ras) {
  if (!ras.used) return "";
  std::string text = "\n";
  if (ras.age_s >= 0) {
    text += Format("RAS at {}, NCCL {}", ras.address, ras.nccl_version.substr(0, 64));
    if (ras.answered_by != 0) {
      text += Format(", answer of process {}", static_cast<int>(ras.answered_by));
    }
    text += Format(", {:.1f} s old; collectives launched:\n", ras.age_s);
    for (size_t i = 0; i < ras.communicators.size() && i < kShownCommunicators; ++i) {
      text += CommunicatorText(ras.communicators[i], ras);
    }
    if (ras.communicators.size() > kShownCommunicators) {
      text += Format("and {} more communicators\n", ras.communicators.size() - kShownCommunicators);
    }
  }
  if (!ras.problem.empty()) text += "RAS: " + ras.problem + "\n";
  if (!ras.verdict.text.empty()) text += "verdict: " + ras.verdict.text + "\n";
  return text == "\n" ? "" : PrintableLines(text);
}

Result<std::vector<int>> ProcessesOfJob(const std::vector<int>& pids) {
  const RootFs tree;
  const auto jobs = watch::SplitIntoJobs(watch::LibraryProcesses(tree));
  std::vector<int> found = pids;
  const auto add = [&found](const std::vector<JobProcess>& job) {
    for (const JobProcess& process : job) {
      if (std::find(found.begin(), found.end(), process.pid) == found.end()) {
        found.push_back(process.pid);
      }
    }
  };
  if (pids.empty()) {
    if (jobs.empty()) {
      return NotFound(
          "no process that this user may read has NCCL or RCCL loaded; give the PID of a rank");
    }
    if (jobs.size() > 1) {
      std::vector<std::string> names;
      for (size_t i = 0; i < jobs.size() && i < kShownJobs; ++i) {
        names.push_back(Format("{} ({}, {})", static_cast<int>(jobs[i][0].pid),
                               Printable(jobs[i][0].name.substr(0, 32)),
                               Count(jobs[i].size(), "process")));
      }
      return Invalid(Format("there are {} jobs on this host; give the PID of a rank: {}",
                            jobs.size(), Join(names, ", ")));
    }
    add(jobs[0]);
    return found;
  }
  for (const int pid : pids) {
    JobProcess own;
    if (!watch::ReadJobProcess(tree, pid, &own)) continue;  // the sample says what is wrong
    for (const auto& job : jobs) {
      if (std::any_of(job.begin(), job.end(),
                      [&](const JobProcess& other) { return watch::SameJob(own, other); })) {
        add(job);
      }
    }
  }
  return found;
}

}  // namespace diapason::cli
