#include "env_tune/runner.h"

#include <unistd.h>

#include "base/clock.h"
#include "base/descriptor.h"

namespace diapason::env_tune {
namespace {

constexpr std::chrono::milliseconds kGrace{2000};
constexpr std::chrono::milliseconds kPoll{20};  // how soon a request to stop is seen

double Seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

}  // namespace

Result<CommandRun> RunCommand(const std::vector<std::string>& command, const EnvVars& settings,
                              const CommandOptions& options) {
  CommandRun run;
  const auto keep_in = [&options](process::BoundedText* kept) {
    return [kept, &options](std::string_view text) {
      kept->Add(text);
      if (options.show) (void)WriteAll(STDERR_FILENO, text);
    };
  };
  process::ChildOptions how;
  how.command = command;
  for (const auto& [name, value] : settings) how.environment[name] = value;
  how.out = keep_in(&run.out);
  how.err = keep_in(&run.err);
  const double started = SteadySeconds();
  ASSIGN_OR_RETURN(const std::unique_ptr<process::Child> child,
                   process::Child::Start(std::move(how)));
  process::Child& program = *child;
  while (!program.ended()) {
    (void)program.Poll(std::chrono::steady_clock::now() + kPoll);
    const bool late = options.timeout_s > 0 && SteadySeconds() - started > options.timeout_s;
    const bool stopped = options.stop != nullptr && options.stop->load();
    if (program.ended() || (!late && !stopped)) continue;
    run.timed_out = late;
    run.interrupted = stopped;
    program.Stop(kGrace);
    break;
  }
  run.wall_s = SteadySeconds() - started;
  run.status = program.status();
  run.cpu_s = Seconds(program.usage().ru_utime) + Seconds(program.usage().ru_stime);
  run.memory = static_cast<double>(program.usage().ru_maxrss) * 1024;
  program.Drain();
  if (run.status != 0 && !run.timed_out && !run.interrupted) program.Stop(kGrace);
  return run;
}

}  // namespace diapason::env_tune
