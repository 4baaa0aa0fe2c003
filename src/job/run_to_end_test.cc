#include "job/run_to_end.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "base/descriptor.h"
#include "base/file.h"
#include "base/temporary_file.h"
#include "base/text.h"
#include "process/sessions.h"

namespace diapason::job {
namespace {

using std::chrono::milliseconds;

SupervisionOptions Shell(const std::string& script) {
  SupervisionOptions options;
  options.command = {"sh", "-c", script};
  options.environment = process::ChangedEnvironment({});
  options.streams[0] = process::kNowhere;
  return options;
}

// RunToEnd wants a process with one thread, which has no other children: one of its own.
struct Outcome {
  int status = -1;
  std::string text;  // "status started signal asked_by limited killed" and what was said
};
Outcome InAProcess(const SupervisionOptions& wanted,
                   const std::function<void(pid_t)>& meanwhile = {}) {
  const TemporaryFolder folder;
  const std::string file = folder.path() + "/outcome";
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::alarm(600);
    SupervisionOptions options = wanted;
    std::string said;
    options.say = [&said](const std::string& text) { said += text + "\n"; };
    const Result<Supervised> ended = RunToEnd(options);
    std::ofstream out(file);
    if (ended.ok()) {
      const Supervised& one = ended.value();
      out << Format("{} {} {} {} {} {}\n", one.status, one.started, one.signal, one.asked_by,
                    one.limited, one.killed)
          << one.trouble << said;
    }
    out.close();
    ::_exit(ended.ok() ? 0 : 1);
  }
  if (meanwhile) meanwhile(pid);
  Outcome outcome;
  (void)::waitpid(pid, &outcome.status, 0);
  std::stringstream text;
  text << std::ifstream(file).rdbuf();
  outcome.text = text.str();
  return outcome;
}

void WaitFor(const std::string& path) {
  for (int i = 0; i < 60000 && !FileExists(path); ++i) ::usleep(10000);
  ASSERT_TRUE(FileExists(path));
}

pid_t PidIn(const std::string& path) {
  pid_t pid = 0;
  for (int i = 0; i < 60000 && pid == 0; ++i) {
    std::ifstream(path) >> pid;
    if (pid == 0) ::usleep(10000);
  }
  return pid;
}

bool Alive(pid_t pid) {
  std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
  std::stringstream text;
  text << stat.rdbuf();
  const std::optional<process::ProcessStat> read = process::ParseStat(text.str());
  return read && read->state != 'Z' && read->state != 'X';
}

TEST(RunToEndTest, StatusOfTheCommand) {
  EXPECT_EQ(InAProcess(Shell("exit 0")).text, "0 true 0 0 false false\n");
  EXPECT_EQ(InAProcess(Shell("exit 7")).text, "7 true 0 0 false false\n");
  EXPECT_EQ(InAProcess(Shell("kill -SEGV $$")).text, "139 true 11 0 false false\n");
}

TEST(RunToEndTest, ACommandThatCannotBeStarted) {
  SupervisionOptions options = Shell("");
  options.command = {"no-such-program"};
  EXPECT_TRUE(InAProcess(options).text.starts_with("127 false 0 0 false false\n"));
  options.command = {"/etc/passwd"};
  EXPECT_TRUE(InAProcess(options).text.starts_with("126 false 0 0 false false\n"));
}

TEST(RunToEndTest, PassesSignalsOn) {
  const TemporaryFolder folder;
  const std::string ready = folder.path() + "/ready";
  for (const auto& [signal, name] : std::vector<std::pair<int, std::string>>{
           {SIGTERM, "TERM"}, {SIGINT, "INT"}, {SIGHUP, "HUP"}, {SIGUSR1, "USR1"}}) {
    const SupervisionOptions options =
        Shell("trap 'exit 9' " + name + "; touch " + ready + "; while :; do sleep 0.02; done");
    const Outcome outcome = InAProcess(options, [&, signal = signal](pid_t pid) {
      WaitFor(ready);
      (void)::kill(pid, signal);
    });
    const int asked = signal == SIGUSR1 ? 0 : signal;
    EXPECT_EQ(outcome.text, Format("9 true 0 {} false false\n", asked)) << name;
    ::unlink(ready.c_str());
  }
}

TEST(RunToEndTest, LimitAndSignalOfChoice) {
  SupervisionOptions options = Shell("trap 'exit 5' USR2; while :; do sleep 0.02; done");
  options.limit = milliseconds(300);
  options.end_signal = SIGUSR2;
  // A shell that has not come to its trap yet dies of the signal.
  const std::string text = InAProcess(options).text;
  EXPECT_TRUE(text.starts_with("5 true 0 0 true false\n") ||
              text.starts_with("140 true 12 0 true false\n"))
      << text;
  EXPECT_NE(text.find("time limit of 0.3 s"), std::string::npos);
}

TEST(RunToEndTest, KillsWhatIgnoresTheRequest) {
  const TemporaryFolder folder;
  const std::string one = folder.path() + "/one";
  const std::string two = folder.path() + "/two";
  SupervisionOptions options =
      Shell("trap '' TERM; setsid sh -c 'trap \"\" TERM; echo $$ > " + two +
            "; while :; do sleep 0.1; done' & touch " + one + "; while :; do sleep 0.1; done");
  options.enough = [one, two] {
    pid_t pid = 0;
    std::ifstream(two) >> pid;
    return FileExists(one) && pid > 0;
  };
  options.limit_grace = milliseconds(300);
  const std::string text = InAProcess(options).text;
  EXPECT_TRUE(text.starts_with("137 true 9 0 true true\n")) << text;
  EXPECT_FALSE(Alive(PidIn(two)));
}

TEST(RunToEndTest, Enough) {
  const TemporaryFolder folder;
  const std::string file = folder.path() + "/seen";
  SupervisionOptions options = Shell("touch " + file + "; exec sleep 1000");
  options.enough = [file] { return FileExists(file); };
  EXPECT_TRUE(InAProcess(options).text.starts_with("143 true 15 0 true false\n"));
}

// A command in whose time a pipe of 64 KiB is filled many times, and which is asked about often.
TEST(RunToEndTest, OutputThatIsRead) {
  const TemporaryFolder folder;
  const std::string file = folder.path() + "/read";
  Result<Pipe> pipe = MakePipe();
  ASSERT_TRUE(pipe.ok());
  ASSERT_EQ(::fcntl(pipe.value().read.get(), F_SETFL, O_NONBLOCK), 0);
  SupervisionOptions options = Shell("yes | head -c 5000000; touch " + file + "; exec sleep 1000");
  options.streams[1] = pipe.value().write.get();
  options.watched = pipe.value().read.get();
  size_t read = 0;
  options.read = [&] {
    char buffer[65536];
    const ssize_t got = ::read(options.watched, buffer, sizeof(buffer));
    read += got > 0 ? static_cast<size_t>(got) : 0;
    return got > 0;
  };
  options.ask_every = milliseconds(0);  // as often as can be
  int asked = 0;
  options.enough = [&] {
    if (!FileExists(file) || ++asked < 3) return false;
    std::ofstream(file) << read;
    return true;
  };
  EXPECT_TRUE(InAProcess(options).text.starts_with("143 true 15 0 true false\n"));
  size_t seen = 0;
  std::ifstream(file) >> seen;
  EXPECT_EQ(seen, 5000000U);
}

TEST(RunToEndTest, NothingOfTheSessionIsLeft) {
  const TemporaryFolder folder;
  const std::string file = folder.path() + "/pid";
  const std::string text = InAProcess(Shell("sleep 1000 & echo $! > " + file)).text;
  EXPECT_TRUE(text.starts_with("0 true 0 0 false false\n")) << text;
  EXPECT_FALSE(Alive(PidIn(file)));
}

// A daemon that the command has started on purpose outlives a success, not a failure.
TEST(RunToEndTest, OtherSessionsAreLeftAloneAfterASuccess) {
  const TemporaryFolder folder;
  const std::string file = folder.path() + "/pid";
  const std::string start = "setsid sh -c 'echo $$ > " + file +
                            "; exec sleep 1000' & while ! test -s " + file +
                            "; do sleep 0.01; done; ";
  (void)InAProcess(Shell(start + "exit 0"));
  const pid_t daemon = PidIn(file);
  EXPECT_TRUE(Alive(daemon));
  (void)::kill(daemon, SIGKILL);
  ::unlink(file.c_str());
  SupervisionOptions all = Shell(start + "exit 0");
  all.end_all = true;
  (void)InAProcess(all);
  EXPECT_FALSE(Alive(PidIn(file)));
  ::unlink(file.c_str());
  (void)InAProcess(Shell(start + "exit 1"));
  const pid_t second = PidIn(file);
  const bool left = Alive(second);
  EXPECT_FALSE(left);
  if (left) (void)::kill(second, SIGKILL);
}

TEST(RunToEndTest, TheCommandEndsWithUs) {
  const TemporaryFolder folder;
  const std::string file = folder.path() + "/pid";
  (void)InAProcess(Shell("echo $$ > " + file + "; sleep 1000"), [&](pid_t pid) {
    ASSERT_GT(PidIn(file), 0);
    (void)::kill(pid, SIGKILL);
  });
  const pid_t command = PidIn(file);
  for (int i = 0; i < 60000 && Alive(command); ++i) ::usleep(10000);
  EXPECT_FALSE(Alive(command));
}

TEST(RunToEndTest, TheThirdInterruptKills) {
  const TemporaryFolder folder;
  const std::string ready = folder.path() + "/ready";
  const Outcome outcome = InAProcess(
      Shell("trap '' INT; touch " + ready + "; while :; do sleep 0.05; done"), [&](pid_t pid) {
        WaitFor(ready);
        // Two that come together count as one.
        siginfo_t ended{};
        for (int i = 0; i < 2000 && ended.si_pid == 0; ++i) {
          (void)::kill(pid, SIGINT);
          ::usleep(300000);
          (void)::waitid(P_PID, static_cast<id_t>(pid), &ended, WEXITED | WNOHANG | WNOWAIT);
        }
      });
  EXPECT_TRUE(outcome.text.starts_with("137 true 9 2 false true\n")) << outcome.text;
}

}  // namespace
}  // namespace diapason::job
