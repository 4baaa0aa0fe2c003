// Tables of nccl-tests and rccl-tests: wrong results, empty or unfinished tables, outliers.
#include <algorithm>
#include <map>

#include "base/stats.h"
#include "base/text.h"
#include "base/units.h"
#include "logs/diagnose.h"

namespace diapason::logs {
namespace {

std::string Name(const PerfTest& test) {
  std::string name = test.collective.empty() ? "a test" : test.collective;
  if (test.host_count == 2) name += " between " + test.hosts[0] + " and " + test.hosts[1];
  return name;
}

std::string NameAndFile(const LogFacts& facts, const PerfTest& test) {
  return Name(test) + " in " + facts.Where(Spot{test.file, 0});
}

// Several tests of one kind: reports one that is far below the others.
void Outliers(const LogFacts& facts, const std::vector<const PerfTest*>& tests,
              std::vector<Finding>* findings) {
  if (tests.size() < 5) return;
  std::vector<double> values;
  values.reserve(tests.size());
  for (const PerfTest* test : tests) values.push_back(test->average);
  const double median = Median(values);
  // Five times the typical spread, and at least a tenth: beyond noise.
  const double limit = median - std::max(5 * RobustDeviation(values), 0.1 * median);
  std::vector<const PerfTest*> slow;
  std::map<std::string, std::pair<size_t, size_t>> hosts;  // slow, all
  for (const PerfTest* test : tests) {
    const bool low = test->average < limit;
    if (low) slow.push_back(test);
    for (const std::string& host : test->hosts) {
      if (host.empty()) continue;
      ++hosts[host].second;
      hosts[host].first += low ? 1 : 0;
    }
  }
  if (slow.empty()) return;
  std::sort(slow.begin(), slow.end(),
            [](const PerfTest* a, const PerfTest* b) { return a->average < b->average; });
  Finding finding;
  finding.id = "perf.outlier";
  finding.severity = Severity::kWarning;
  finding.title = Format(
      "{} of {} runs of {} are far below the others: {:.3g} GB/s on average and "
      "less, the median is {:.3g}",
      slow.size(), tests.size(), slow[0]->collective.empty() ? "a test" : slow[0]->collective,
      slow.back()->average, median);
  for (size_t i = 0; i < slow.size() && i < 6; ++i) {
    finding.evidence.push_back(
        Format("{}: {:.3g} GB/s", NameAndFile(facts, *slow[i]), slow[i]->average));
  }
  if (slow.size() > 6) finding.evidence.push_back(Format("and {} more", slow.size() - 6));
  std::vector<std::string> always;
  for (const auto& [host, counts] : hosts) {
    if (counts.first == counts.second && counts.second > 1) always.push_back(host);
  }
  if (hosts.size() <= 2) {
    finding.action =
        "the same hosts did better in the other runs: compare the settings (diapason env check) "
        "and what else ran at that time";
  } else if (!always.empty()) {
    finding.action = "look at " + Join(always, ", ") + ": slow in every pair";
  } else {
    finding.action =
        "each of these hosts is fast with others: the path between them, a shared link, or other "
        "jobs at that time are to blame; run these pairs again";
  }
  findings->push_back(std::move(finding));
}

Finding WrongValues(const LogFacts& facts, const std::vector<const PerfTest*>& wrong) {
  Finding finding;
  finding.id = "perf.wrong";
  finding.severity = Severity::kError;
  finding.title =
      Format("{} gave wrong values: the collective computed nonsense", Count(wrong.size(), "test"));
  for (size_t i = 0; i < wrong.size() && i < 4; ++i) {
    finding.evidence.push_back(facts.Where(wrong[i]->wrong_place));
  }
  finding.action =
      "trust no result of this machine until it is found: memory errors of a GPU, a "
      "broken plugin or library; repeat with NCCL_ALGO and NCCL_PROTO fixed to find "
      "which";
  return finding;
}

Finding RanAlone(const LogFacts& facts, const PerfTest& test) {
  return {"perf.alone",
          Severity::kError,
          test.rank_zeros > 1
              ? Format("{} independent runs with one GPU each were taken for one: bus bandwidth "
                       "is 0 everywhere, rank 0 is there {} times",
                       test.rank_zeros, test.rank_zeros)
              : "A test ran with one GPU alone: bus bandwidth is 0 everywhere",
          {facts.Where(test.start), facts.Where(test.zero)},
          "build the tests with MPI=1 and start them with mpirun or srun, or give one process all "
          "GPUs (-g 8)"};
}

Finding Unfinished(const LogFacts& facts, const std::vector<const PerfTest*>& unfinished) {
  Finding finding;
  finding.id = "perf.unfinished";
  finding.severity = Severity::kError;
  finding.title = Format("{} began and did not finish", Count(unfinished.size(), "test"));
  for (size_t i = 0; i < unfinished.size() && i < 4; ++i) {
    const PerfTest& test = *unfinished[i];
    finding.evidence.push_back(
        Format("{}: {}, {} rows", facts.Where(Spot{test.file, test.line}), Name(test), test.rows));
  }
  if (unfinished.size() > 4) {
    finding.evidence.push_back(Format("and {} more", unfinished.size() - 4));
  }
  finding.action = "it hung, failed or was killed: run it again with NCCL_DEBUG=INFO";
  return finding;
}

// The first test whose small messages are slow.
void HighLatency(const LogFacts& facts, std::vector<Finding>* findings) {
  for (const PerfTest& test : facts.perf.tests) {
    const double usual = test.host_count > 1 ? 150 : 80;
    if (test.rows == 0 || !test.moved || test.smallest > 1024 || test.smallest_us <= usual) {
      continue;
    }
    findings->push_back({"latency.high",
                         Severity::kNote,
                         Format("Small messages are slow: {:.1f} us for {}, {}", test.smallest_us,
                                FormatBytes(test.smallest), NameAndFile(facts, test)),
                         {facts.Where(test.zero)},
                         "look at CPU frequency and affinity, at protocol and algorithm for small "
                         "sizes, and at sockets in place of RDMA"});
    return;
  }
}

}  // namespace

void DiagnosePerf(const LogFacts& facts, std::vector<Finding>* findings) {
  std::map<std::string, std::vector<const PerfTest*>> like;
  std::vector<const PerfTest*> wrong;
  std::vector<const PerfTest*> alone;
  std::vector<const PerfTest*> unfinished;
  for (const PerfTest& test : facts.perf.tests) {
    if (test.wrong > 0) wrong.push_back(&test);
    // Rank 0 several times, or a single rank: bandwidth is zero everywhere.
    const bool lonely =
        test.rows > 0 && !test.moved && (test.ranks == 1 || test.rank_zeros > 1 || test.starts > 1);
    if (lonely) alone.push_back(&test);
    if (test.ends < test.starts && !lonely && (test.rows > 0 || test.ranks > 0)) {
      unfinished.push_back(&test);
    }
    if (test.ends > 0 && test.average > 0) {
      like[Format("{} {} {} {} {}", test.collective, test.ranks, test.host_count, test.smallest,
                  test.largest)]
          .push_back(&test);
    }
  }
  if (!wrong.empty()) findings->push_back(WrongValues(facts, wrong));
  if (!alone.empty()) findings->push_back(RanAlone(facts, *alone[0]));
  if (!unfinished.empty()) findings->push_back(Unfinished(facts, unfinished));
  for (const auto& [key, tests] : like) Outliers(facts, tests, findings);
  HighLatency(facts, findings);
}

}  // namespace diapason::logs
