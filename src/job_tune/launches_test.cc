#include "job_tune/launches.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/file.h"
#include "base/temporary_file.h"
#include "base/text.h"

namespace diapason::job_tune {
namespace {

std::string ReadAll(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

void WaitFor(const std::string& path) {
  for (int i = 0; i < 60000 && !FileExists(path); ++i) ::usleep(10000);
}

// Everything in a process of its own: the command is started by one with one thread.
class LaunchesTest : public testing::Test {
 protected:
  LaunchesTest() {
    request_.output = Path("tuned");
    request_.budget = 600;
    request_.grace = 20;
    plan_.purpose = "look";
  }
  std::string Path(const std::string& name) const { return folder_.path() + "/" + name; }
  void Shell(const std::string& script) { request_.command = {"sh", "-c", script}; }

  // Calls `use` in a new process, and returns what it returns. `meanwhile` gets its id.
  std::string InAProcess(const std::function<std::string(Launches*)>& use,
                         const std::function<void(pid_t)>& meanwhile = {}) {
    const std::string file = Path("outcome");
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::alarm(900);
      // A standard input with something in it, which is not the command's.
      std::ofstream(Path("input")) << "of the user\n";
      (void)::dup2(::open(Path("input").c_str(), O_RDONLY | O_CLOEXEC), STDIN_FILENO);
      std::string said;
      Launches launches(request_, ProcessEnvironment(),
                        [&](const std::string& text) { said += text + "\n"; });
      const std::string text = use(&launches);
      std::ofstream(Path("said")) << said;
      std::ofstream(file) << text;
      ::_exit(0);
    }
    if (meanwhile) meanwhile(pid);
    int status = -1;
    (void)::waitpid(pid, &status, 0);
    EXPECT_EQ(status, 0);
    return ReadAll(file);
  }
  // One launch: what Trouble() says of it, or the error.
  std::string Trouble(const std::function<void(pid_t)>& meanwhile = {}) {
    return InAProcess(
        [this](Launches* launches) {
          const Result<Launch> launch = launches->Run(plan_);
          if (!launch.ok()) return "error: " + launch.status().message();
          const Launch& one = launch.value();
          std::ofstream(Path("launch"))
              << Format("{} fine={} limited={} killed={} interrupted={} enough={} metric={}",
                        one.ended.status, one.Fine(), one.ended.limited, one.ended.killed,
                        one.interrupted, one.enough, one.metric.value_or(-1));
          return Launches::Trouble(one);
        },
        meanwhile);
  }
  std::string Launched() const { return ReadAll(Path("launch")); }
  std::string Log(int number = 1) const {
    return ReadAll(Path(Format("tuned/launch-{}.log", number)));
  }
  // A time for `sleep` by which the processes of this test are found.
  static std::string Word() { return Format("{}", 100'000'000 + ::getpid()); }
  // Whether one of them runs; it is ended.
  static bool LeftRunning() {
    bool found = false;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
      const std::string words = ReadAll(entry.path().string() + "/cmdline");
      uint64_t pid = 0;
      if (!Contains(words, Word()) || !ParseUnsigned(entry.path().filename().string(), &pid)) {
        continue;
      }
      found = true;
      (void)::kill(static_cast<pid_t>(pid), SIGKILL);
    }
    return found;
  }

  TemporaryFolder folder_;
  Request request_;
  LaunchPlan plan_;
};

TEST_F(LaunchesTest, ACommandThatFailsAtOnce) {
  Shell("echo first; echo cannot open train.py >&2; exit 3");
  const std::string trouble = Trouble();
  EXPECT_TRUE(Contains(trouble, "failed with status 3")) << trouble;
  EXPECT_TRUE(Contains(trouble, "before it created a communicator"));
  EXPECT_TRUE(Contains(trouble, "Run it alone first"));
  EXPECT_TRUE(trouble.ends_with("first\ncannot open train.py"));
  EXPECT_TRUE(Launched().starts_with("3 fine=false"));
  EXPECT_TRUE(Log().starts_with("[diapason: launch 1, look: sh -c echo first;")) << Log();
  Shell("kill -SEGV $$");
  EXPECT_TRUE(Contains(Trouble(), "was ended by SIGSEGV"));
  EXPECT_TRUE(Contains(ReadAll(Path("said")), "launch 1 of at most 12: look"));
}

TEST_F(LaunchesTest, ACommandThatCannotBeStarted) {
  request_.command = {"no-such-program-here"};
  EXPECT_TRUE(Contains(Trouble(), "no such program is in PATH. Check the name behind `--`"));
  request_.command = {"/etc/passwd"};
  EXPECT_TRUE(Contains(Trouble(), "Make it executable"));
}

TEST_F(LaunchesTest, ACommandWithoutACommunicator) {
  Shell("exit 0");
  const std::string trouble = Trouble();
  EXPECT_TRUE(Contains(trouble, "no communicator was created")) << trouble;
  EXPECT_TRUE(Contains(trouble, "linked statically"));
  EXPECT_TRUE(Contains(trouble, "2.19"));
}

TEST_F(LaunchesTest, ACommandThatHangs) {
  // Only the limit ends it, however slow the machine is.
  Shell("trap '' TERM; setsid sh -c \"trap '' TERM; sleep " + Word() + "\" & sleep " + Word());
  plan_.limit = 1;
  request_.grace = 0.3;
  const std::string trouble = Trouble();
  EXPECT_TRUE(Contains(trouble, "created no communicator within 1 s")) << trouble;
  EXPECT_TRUE(Contains(trouble, "was killed"));
  EXPECT_TRUE(Contains(trouble, "--budget"));
  EXPECT_FALSE(LeftRunning());
}

TEST_F(LaunchesTest, WhatItLeavesBehindIsEnded) {
  Shell("sleep " + Word() + " & setsid sleep " + Word() + " & (setsid sh -c 'sleep " + Word() +
        "' &) ; exit 0");
  (void)Trouble();
  EXPECT_TRUE(Launched().starts_with("0 fine=true limited=false")) << Launched();
  EXPECT_FALSE(LeftRunning());
}

TEST_F(LaunchesTest, MuchOutputIsBounded) {
  request_.metric.pattern = "loss=([0-9]+)";
  Shell("yes 0123456789abcdef | head -c 200000000; echo; echo loss=4711");
  (void)Trouble();
  EXPECT_TRUE(Launched().starts_with("0 fine=true")) << Launched();
  EXPECT_TRUE(Launched().ends_with("metric=4711"));
  const std::string log = Log();
  EXPECT_LT(log.size(), (size_t{2} << 20) + 100);
  EXPECT_TRUE(Contains(log, " bytes are left out here]\n"));
  EXPECT_TRUE(log.ends_with("loss=4711\n"));
}

TEST_F(LaunchesTest, OutputOfAllKinds) {
  request_.metric.pattern = "loss=([0-9]+)";
  // Other folders, a stream that is opened again, no line end.
  Shell("cd /; pwd; echo to err > /dev/stderr; cat; printf loss=12");
  (void)Trouble();
  EXPECT_TRUE(Launched().ends_with("metric=12")) << Launched();
  EXPECT_TRUE(Log().ends_with("]\n/\nto err\nloss=12")) << Log();
}

TEST_F(LaunchesTest, EnoughEndsIt) {
  Shell("touch " + Path("ready") + "; exec sleep 1000");
  plan_.enough = [this](const job::PreparedJob& job) {
    return FileExists(Path("ready")) && !job.journal_dir.empty();
  };
  plan_.ask_every = std::chrono::milliseconds(5);
  EXPECT_TRUE(Contains(Trouble(), "no communicator was created"));
  EXPECT_EQ(Launched(),
            "143 fine=true limited=true killed=false interrupted=false enough=true metric=-1");
}

TEST_F(LaunchesTest, SignalsOfTheUser) {
  for (const int signal : {SIGINT, SIGTERM}) {
    Shell("trap 'exit 0' INT TERM; touch " + Path("ready") + "; while :; do sleep 0.02; done");
    const std::string trouble = Trouble([&](pid_t pid) {
      WaitFor(Path("ready"));
      (void)::kill(pid, signal);
    });
    EXPECT_EQ(trouble, "the command was interrupted");
    EXPECT_TRUE(Contains(Launched(), "fine=false")) << Launched();
    ::unlink(Path("ready").c_str());
  }
}

TEST_F(LaunchesTest, EveryLaunchIsAnother) {
  ::setenv("DIAPASON_POLICY", "/of/another/job.conf", 1);
  Shell(
      "echo $DIAPASON_LAUNCH $DIAPASON_JOB $DIAPASON_MODE \"[$DIAPASON_POLICY]\" "
      "$DIAPASON_JOURNAL_LIMIT $DIAPASON_JOURNAL_TIMES $(ulimit -n) >> " +
      Path("seen"));
  request_.most_launches = 2;
  request_.between = "echo between $DIAPASON_LAUNCH >> " + Path("seen") + "; echo hello";
  plan_.variables = {{"DIAPASON_JOURNAL_TIMES", "1"}};
  std::filesystem::create_directories(Path("tuned/journals/launch-7"));
  std::ofstream(Path("tuned/launch-7.log")) << "of before";
  std::ofstream(Path("tuned/launch-mine.log")) << "of the user";
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = std::min<rlim_t>(files.rlim_max, 555);
  const std::string text = InAProcess([&](Launches* launches) {
    (void)::setrlimit(RLIMIT_NOFILE, &files);
    std::string all = Format("{}:{} ", launches->count(), launches->left());
    for (int i = 0; i < 2; ++i) {
      all += launches->Run(plan_).value().prepared.Variable("DIAPASON_JOB") + " ";
    }
    return all + launches->Run(plan_).status().message();
  });
  ::unsetenv("DIAPASON_POLICY");
  std::istringstream words(text);
  std::string counts, first, second;
  words >> counts >> first >> second;
  EXPECT_EQ(counts, "0:2");
  EXPECT_TRUE(first.starts_with("tune-"));
  EXPECT_NE(first, second);
  EXPECT_TRUE(Contains(text, "has been started 2 times, as often as it may be"));
  const std::string rest = Format(" observe [] 268435456 1 {}\n", files.rlim_cur);
  EXPECT_EQ(ReadAll(Path("seen")), "1 " + first + rest + "between 2\n2 " + second + rest);
  EXPECT_TRUE(Log(2).starts_with("[diapason: between launches: echo")) << Log(2);
  EXPECT_TRUE(Contains(Log(2), "hello\n[diapason: launch 2, look:"));
  EXPECT_FALSE(FileExists(Path("tuned/launch-7.log")));
  EXPECT_FALSE(FileExists(Path("tuned/journals/launch-7")));
  EXPECT_TRUE(FileExists(Path("tuned/journals/launch-2")));
  EXPECT_TRUE(FileExists(Path("tuned/launch-mine.log")));
}

TEST_F(LaunchesTest, BetweenThatFails) {
  Shell("echo started >> " + Path("seen"));
  request_.between = "echo no room >&2; exit 4";
  const auto twice = [this](Launches* launches) {
    (void)launches->Run(plan_);
    const Result<Launch> second = launches->Run(plan_);
    return second.ok() ? Format("interrupted={}", second.value().interrupted)
                       : second.status().message();
  };
  const std::string text = InAProcess(twice);
  EXPECT_TRUE(Contains(text, "exit 4' has failed with status 4: no room")) << text;
  EXPECT_EQ(ReadAll(Path("seen")), "started\n");
  request_.between = "touch " + Path("ready") + "; exec sleep 1000";
  EXPECT_EQ(InAProcess(twice,
                       [&](pid_t pid) {
                         WaitFor(Path("ready"));
                         (void)::kill(pid, SIGTERM);
                       }),
            "interrupted=true");
}

TEST_F(LaunchesTest, BetweenEndsWithTheBudget) {
  Shell("exit 0");
  request_.between = "exec sleep " + Word();
  request_.budget = 3;
  const std::string text = InAProcess([this](Launches* launches) {
    // On a slow machine the first launch may take all of it.
    (void)launches->Run(plan_);
    return launches->Run(plan_).status().message();
  });
  EXPECT_TRUE(Contains(text, "larger --budget")) << text;
  EXPECT_FALSE(LeftRunning());
}

TEST_F(LaunchesTest, WhatCannotBePrepared) {
  Shell("exit 0");
  request_.output = "/proc/nothing";
  EXPECT_TRUE(Contains(Trouble(), "name another one with -o"));
  request_.output = Path("tuned");
  request_.command = {"ssh", "elsewhere", "train"};
  EXPECT_TRUE(Contains(Trouble(), "error: the command is not started: ssh does not pass"));
  Shell("exit 0");
  request_.metric.pattern = "loss";
  EXPECT_TRUE(Contains(Trouble(), "--metric 'loss' cannot be used"));
}

// A signal while no command runs ends the tool no more, and no further launch is started.
TEST_F(LaunchesTest, InterruptedBetweenLaunches) {
  Shell("exit 0");
  EXPECT_EQ(InAProcess([&](Launches* launches) {
              const Result<Launch> first = launches->Run(plan_);
              if (!first.ok() || first.value().interrupted || !first.value().begun) return "first";
              (void)::raise(SIGTERM);
              const Result<Launch> second = launches->Run(plan_);
              if (!second.ok() || !second.value().interrupted) return "not interrupted";
              return second.value().begun || launches->count() != 1 ? "started" : "held";
            }),
            "held");
}

TEST_F(LaunchesTest, GraphsHaveMoreLaunchesUnlessANumberIsGiven) {
  Launches launches(request_, ProcessEnvironment(), {});
  EXPECT_EQ(launches.most(), kMostLaunches);
  launches.AllowForGraphs();
  EXPECT_EQ(launches.most(), kMostWithGraphs);
  request_.most_launches = 5;
  Launches few(request_, ProcessEnvironment(), {});
  few.AllowForGraphs();
  EXPECT_EQ(few.left(), 5);
}

// Of journals as the plugin writes them.
class TroubleTest : public LaunchesTest {
 protected:
  // What is said of a launch with this journal.
  std::string TroubleOf(const std::string& journal, job::JobMode mode = job::JobMode::kObserve) {
    Launch launch;
    launch.prepared.mode = mode;
    launch.prepared.journal_dir = folder_.path();
    launch.prepared.journal_stem = "run-";
    launch.prepared.command.words = {"./train"};
    launch.ended = ended_;
    launch.limit = 7;
    std::ofstream(Path("run-1.jsonl")) << journal;
    return Launches::Trouble(launch);
  }
  static std::string Communicator(const std::string& agreed) {
    return R"({"type":"journal","version":1,"host":"h","pid":1})"
           "\n"
           R"({"type":"communicator","comm":0,"api":4,"library":"nccl","id":"0x1",)"
           R"("library_version":22809,"nodes":1,"ranks":2,"mode":"learn","policy":"","digest":"",)"
           R"("rows":0,"chain":"","rank":0,"agreed":")" +
           agreed + "\"}\n";
  }
  static constexpr char kCall[] =
      R"({"type":"decision","time_ns":1,"comm":0,"call":1,"collective":"allreduce","bytes":8,)"
      R"("pipe_ops":1,"reg_buff":0,"algorithm":"-1","protocol":"-1","channels":0,"line":0,)"
      R"("reason":"no-policy","applied":false})"
      "\n";
  job::Supervised ended_;
};

TEST_F(TroubleTest, Journals) {
  EXPECT_TRUE(Contains(TroubleOf("no journal\n"), "cannot be read"));
  EXPECT_TRUE(Contains(TroubleOf(Communicator("")), "made no collective that the library asks"))
      << TroubleOf(Communicator(""));
  ended_.limited = true;
  EXPECT_TRUE(Contains(TroubleOf(Communicator("")), "made no collective within 7 s"));
  EXPECT_EQ(TroubleOf(Communicator("") + kCall), "");
  ended_ = {};
  EXPECT_EQ(TroubleOf(Communicator("") + kCall), "");
  EXPECT_EQ(TroubleOf(Communicator("learn") + kCall, job::JobMode::kLearn), "");
  EXPECT_EQ(TroubleOf(Communicator("compare") + kCall, job::JobMode::kCompare), "");
  const std::string aside = Communicator("the versions differ") + kCall;
  EXPECT_TRUE(Contains(TroubleOf(aside, job::JobMode::kCompare),
                       "left every choice to the library: the versions differ"));
  ended_.status = 5;
  EXPECT_TRUE(Contains(TroubleOf(aside, job::JobMode::kCompare), "diapason run --observe"));
}

TEST_F(TroubleTest, ACommandThatHangsLater) {
  // Its last call was long before its end.
  const std::string journal = Communicator("") + kCall;
  std::ofstream(Path("run-1.jsonl")) << journal;
  Launch launch;
  launch.prepared.journal_dir = folder_.path();
  launch.prepared.journal_stem = "run-";
  launch.prepared.command.words = {"./train"};
  launch.seconds = launch.limit = 1000;
  launch.ended.limited = true;
  launch.ended_ns = WallTimeNs();
  const auto trouble = [&](int seconds) {
    const timespec times[2] = {{::time(nullptr) - seconds, 0}, {::time(nullptr) - seconds, 0}};
    EXPECT_EQ(::utimensat(AT_FDCWD, Path("run-1.jsonl").c_str(), times, 0), 0);
    return Launches::Trouble(launch);
  };
  EXPECT_TRUE(Contains(trouble(900), "the command hung: it made no call in its last 9"));
  EXPECT_EQ(trouble(100), "");
  // What counts is the end of the launch, not when it is asked about.
  launch.ended_ns -= uint64_t{600} * 1000000000;
  EXPECT_EQ(trouble(900), "");
  launch.ended_ns += uint64_t{600} * 1000000000;
  launch.prepared.variables = {{"DIAPASON_JOURNAL_LIMIT", Format("{}", journal.size())}};
  EXPECT_EQ(trouble(900), "") << "the journal was full";
}

}  // namespace
}  // namespace diapason::job_tune
