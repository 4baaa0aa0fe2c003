#include "measure/worker.h"

#include <cstdio>
#include <iostream>

#include "base/text.h"
#include "base/units.h"
#include "measure/job_measurer.h"

namespace diapason::measure {
namespace {

constexpr int kExitFailed = 1;
constexpr int kExitUsage = 2;

int FailWith(const Status& status, int exit_status) {
  std::fprintf(stderr, "diapason: error: %s\n", status.message().c_str());
  return exit_status;
}

Result<std::string> ReadOrder() {
  std::string line;
  if (!std::getline(std::cin, line)) return NotFound("no more orders");
  return line;
}

Status WriteAnswer(const std::string& line) {
  if (std::printf("%s\n", line.c_str()) < 0 || std::fflush(stdout) != 0) {
    return IoError("cannot write to standard output");
  }
  return {};
}

int RunWorker(const std::vector<std::string>& arguments) {
  const Result<WorkerOptions> options = ParseWorkerArguments(arguments);
  if (!options.ok()) return FailWith(options.status(), kExitUsage);
  const RankOptions& ranks = options.value().ranks;
  const Result<int> status =
      RunOnEveryRank(ranks, options.value().choose, [&ranks](Group* group) -> Result<int> {
        RETURN_IF_ERROR(ServeOrders(group, ClusterOf(ranks), ReadOrder, WriteAnswer));
        return 0;
      });
  if (status.ok()) return status.value();
  // The measurer reports the error and ends the other ranks: with an exit status the launcher would
  // report it too.
  if (!WriteAnswer(FailureLine(status.status())).ok())
    return FailWith(status.status(), kExitFailed);
  return 0;
}

}  // namespace

const launch::Helper kWorker{"@worker", RunWorker};

std::vector<std::string> WorkerArguments(const WorkerOptions& options) {
  const RankOptions& ranks = options.ranks;
  std::vector<std::string> words = {"--backend", ranks.backend,
                                    "--limit",   Format("{:g}s", ranks.limit),
                                    "--seed",    std::to_string(ranks.seed),
                                    "--ranks",   std::to_string(ranks.ranks),
                                    "--choose",  options.choose ? "1" : "0"};
  if (!ranks.cluster.empty()) words.insert(words.end(), {"--cluster", ranks.cluster});
  return words;
}

Result<WorkerOptions> ParseWorkerArguments(const std::vector<std::string>& arguments) {
  WorkerOptions options;
  if (arguments.size() % 2 != 0) return Invalid("an option of the worker has no value");
  for (size_t i = 0; i < arguments.size(); i += 2) {
    const std::string& name = arguments[i];
    const std::string& value = arguments[i + 1];
    uint64_t number = 0;
    bool fine = true;
    if (name == "--backend") {
      options.ranks.backend = value;
    } else if (name == "--cluster") {
      options.ranks.cluster = value;
    } else if (name == "--limit") {
      const Result<double> seconds = ParseSeconds(value);
      fine = seconds.ok() && seconds.value() >= 0;
      if (fine) options.ranks.limit = seconds.value();
    } else if (name == "--seed") {
      fine = ParseUnsigned(value, &options.ranks.seed);
    } else if (name == "--ranks") {
      fine = ParseUnsigned(value, &number) && number <= 65536;
      options.ranks.ranks = static_cast<int>(number);
    } else if (name == "--choose") {
      fine = value == "0" || value == "1";
      options.choose = value == "1";
    } else {
      return Invalid("the worker has no option '" + name + "'");
    }
    if (!fine) return Invalid("'" + value + "' is no value of " + name);
  }
  return options;
}

}  // namespace diapason::measure
