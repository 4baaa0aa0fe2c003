#include <chrono>
#include <cstdio>

#include "base/text.h"
#include "cli/commands/bench/bench_options.h"
#include "cli/framework/command.h"
#include "launch/program.h"

namespace diapason::cli {
namespace {

// Limit for all sizes of one backend, far longer than a user would wait.
constexpr std::chrono::hours kLimit{24};
constexpr size_t kMostOutput = size_t{256} << 20;

// The command line of this process with another backend, and JSON output.
Result<std::vector<std::string>> CommandFor(const std::string& backend) {
  Result<std::vector<std::string>> own = OwnArguments();
  if (!own.ok()) return own.status();
  const Result<std::string> self = OwnProgram();
  if (!self.ok()) return self.status();
  std::vector<std::string> command = {self.value()};
  for (size_t i = 1; i < own.value().size(); ++i) {
    const std::string& word = own.value()[i];
    if (word == "--backend") {
      command.insert(command.end(), {word, backend});
      ++i;
    } else if (word.starts_with("--backend=")) {
      command.push_back("--backend=" + backend);
    } else if (word != "--json" && word != "--csv") {
      command.push_back(word);
    }
  }
  command.emplace_back("--json");
  return command;
}

}  // namespace

int BenchAllBackends(const BenchOptions& options) {
  if (IsLaunched()) {
    return Fail(Invalid("--backend all starts the ranks itself; run it without a launcher"));
  }
  if (!options.targets.empty() || !options.algorithm.empty() || !options.protocol.empty()) {
    return Fail(
        Invalid("--backend all cannot be combined with --targets or with a configuration: every "
                "library has its own names"));
  }
  std::vector<std::string> results;
  int status = kExitFine;
  for (const BackendInfo& backend : Backends()) {
    if (backend.name == "sim") continue;
    if (!backend.usable) {
      std::fprintf(stderr, "diapason: %s: %s\n", backend.name.c_str(), backend.reason.c_str());
      continue;
    }
    const Result<std::vector<std::string>> command = CommandFor(backend.name);
    if (!command.ok()) return Fail(command.status());
    const auto deadline = std::chrono::steady_clock::now() + kLimit;
    const Result<std::unique_ptr<launch::Program>> program =
        launch::Program::Start(command.value());
    if (!program.ok()) return Fail(program.status());
    const Result<std::string> output = program.value()->ReadAll(kMostOutput, deadline);
    const Result<int> ended = program.value()->Finish(deadline);
    if (!output.ok() || !ended.ok() || ended.value() != 0) {
      status = kExitFailed;
      Warn(backend.name + " failed:\n" + program.value()->ErrorTail());
      if (!output.ok() || output.value().find("\"rows\"") == std::string::npos) continue;
    }
    results.push_back(output.value());
  }
  if (options.json) {
    std::printf("[\n%s]\n", Join(results, ",\n").c_str());
    return status;
  }
  const Result<std::string> text = SideBySide(results);
  if (!text.ok()) return Fail(text.status());
  std::fputs(text.value().c_str(), stdout);
  return status;
}

}  // namespace diapason::cli
