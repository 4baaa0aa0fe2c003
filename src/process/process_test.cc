#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <thread>

#include "base/root_fs.h"
#include "process/child.h"
#include "process/sessions.h"
#include "process/spawn.h"

namespace diapason::process {
namespace {

using std::chrono::minutes;
using std::chrono::steady_clock;

// Only a hang reaches it.
Deadline Limit() { return steady_clock::now() + minutes(2); }

// What a program has written, and how it has ended.
struct Written {
  std::string out;
  std::string err;
  std::unique_ptr<Child> child;
};

// Starts a shell and polls until its output begins with a whole line, or it has ended.
void StartScript(const std::string& script, Written* written, ChildOptions options = {}) {
  options.command = {"sh", "-c", script};
  options.out = [written](std::string_view text) { written->out.append(text); };
  options.err = [written](std::string_view text) { written->err.append(text); };
  Result<std::unique_ptr<Child>> child = Child::Start(std::move(options));
  ASSERT_TRUE(child.ok()) << child.status().message();
  written->child = std::move(child).value();
  const Deadline limit = Limit();
  while (!written->child->ended() && written->out.find('\n') == std::string::npos) {
    ASSERT_TRUE(written->child->Poll(limit));
  }
}

void RunScript(const std::string& script, Written* written, ChildOptions options = {}) {
  StartScript(script, written, std::move(options));
  ASSERT_NE(written->child, nullptr);
  ASSERT_TRUE(written->child->Wait(Limit()));
  written->child->Drain();
}

pid_t Number(const std::string& text) { return static_cast<pid_t>(std::atoi(text.c_str())); }

// A zombie counts as gone: another process has to reap it.
bool Gone(pid_t pid) {
  const std::optional<ProcessStat> stat =
      ParseStat(RootFs().Read("/proc/" + std::to_string(pid) + "/stat").value_or(""));
  return !stat || stat->state == 'Z' || stat->state == 'X';
}

void WaitUntilGone(pid_t pid) {
  ASSERT_GT(pid, 1);
  for (const Deadline limit = Limit(); !Gone(pid);) {
    ASSERT_LT(steady_clock::now(), limit);
    std::this_thread::yield();
  }
}

TEST(Spawn, SaysWhatCannotBeExecuted) {
  int error = -1;
  SpawnOptions options;
  EXPECT_EQ(Spawn(options, &error).status().code(), ErrorCode::kInvalid);
  EXPECT_EQ(error, 0);
  options.command = {"/no/such/program"};
  const Result<pid_t> missing = Spawn(options, &error);
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.status().code(), ErrorCode::kUnavailable);
  EXPECT_EQ(missing.status().message(),
            "cannot start '/no/such/program': No such file or directory");
  EXPECT_EQ(error, ENOENT);
  options.command = {"/"};
  EXPECT_FALSE(Spawn(options, &error).ok());
  EXPECT_EQ(error, EACCES);
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);  // none of them is left
}

TEST(Spawn, DoesNotWaitForeverForAProgramThatIsNotExecuted) {
  Result<Pipe> pipe = MakePipe();
  ASSERT_TRUE(pipe.ok());
  SpawnOptions options;
  options.command = {"true"};
  options.environment = ChangedEnvironment({});
  options.exec_limit = std::chrono::milliseconds(200);
  // Exec would come after this, and never does; its copy of the pipe is closed when it is gone.
  options.prepare = [] {
    for (;;) ::pause();
  };
  const Result<pid_t> started = Spawn(options);
  ASSERT_FALSE(started.ok());
  EXPECT_EQ(started.status().code(), ErrorCode::kTimeout);
  EXPECT_NE(started.status().message().find("'true' was not started within 0.2 s"),
            std::string::npos)
      << started.status().message();
  pipe.value().write.Close();
  pollfd ended{pipe.value().read.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&ended, 1, 120000), 1) << "the process is still there";
}

TEST(Spawn, LooksInThePathOfTheNewEnvironment) {
  SpawnOptions options;
  options.command = {"true"};
  options.environment = {"PATH=/nonexistent"};
  EXPECT_FALSE(Spawn(options).ok());
  options.environment = {"PATH=/bin:/usr/bin"};
  const Result<pid_t> pid = Spawn(options);
  ASSERT_TRUE(pid.ok());
  int status = -1;
  ASSERT_EQ(::waitpid(pid.value(), &status, 0), pid.value());
  EXPECT_EQ(status, 0);
}

TEST(Spawn, StreamsMayChangePlaces) {
  Result<Pipe> out = MakePipe();
  Result<Pipe> err = MakePipe();
  ASSERT_TRUE(out.ok() && err.ok());
  const Descriptor saved[2] = {Descriptor(::dup(1)), Descriptor(::dup(2))};
  ::dup2(out.value().write.get(), 1);
  ::dup2(err.value().write.get(), 2);
  SpawnOptions options;
  options.command = {"/bin/sh", "-c", "echo out; echo err >&2"};
  options.streams[1] = 2;
  options.streams[2] = 1;
  const Result<pid_t> pid = Spawn(options);
  for (const int i : {0, 1}) ::dup2(saved[i].get(), i + 1);
  ASSERT_TRUE(pid.ok());
  ASSERT_EQ(::waitpid(pid.value(), nullptr, 0), pid.value());
  char text[8] = "";
  ASSERT_EQ(::read(out.value().read.get(), text, sizeof(text)), 4);
  EXPECT_STREQ(text, "err\n");
  ASSERT_EQ(::read(err.value().read.get(), text, sizeof(text)), 4);
  EXPECT_STREQ(text, "out\n");
}

TEST(Spawn, TheProgramEndsWithUs) {
  Result<Pipe> made = MakePipe();
  ASSERT_TRUE(made.ok());
  const pid_t us = ::fork();
  if (us == 0) {
    SpawnOptions options;
    options.command = {"/bin/sleep", "600"};
    const Result<pid_t> pid = Spawn(options);
    const pid_t number = pid.ok() ? pid.value() : -1;
    (void)!::write(made.value().write.get(), &number, sizeof(number));
    ::raise(SIGKILL);
  }
  pid_t program = -1;
  ASSERT_EQ(::read(made.value().read.get(), &program, sizeof(program)),
            static_cast<ssize_t>(sizeof(program)));
  ASSERT_EQ(::waitpid(us, nullptr, 0), us);
  WaitUntilGone(program);
}

TEST(Child, ReportsStatusSignalAndBothOutputs) {
  Written exited;
  RunScript("echo out; echo err >&2; exit 3", &exited);
  EXPECT_EQ(exited.child->status(), 3);
  EXPECT_EQ(exited.out, "out\n");
  EXPECT_EQ(exited.err, "err\n");
  EXPECT_FALSE(exited.child->out_open());
  EXPECT_GT(exited.child->usage().ru_maxrss, 0);
  Written killed;
  RunScript("kill -KILL $$", &killed);
  EXPECT_EQ(killed.child->status(), 128 + SIGKILL);
}

TEST(Child, ChangesAndRemovesVariables) {
  ::setenv("PROCESS_TEST_A", "1", 1);
  ::setenv("PROCESS_TEST_B", "2", 1);
  ::setenv("PROCESS_TEST_C", "3", 1);
  ChildOptions options;
  options.environment = {{"PROCESS_TEST_A", "a b"}, {"PROCESS_TEST_B", std::nullopt}};
  Written written;
  RunScript("echo \"$PROCESS_TEST_A|${PROCESS_TEST_B-none}|$PROCESS_TEST_C\"", &written,
            std::move(options));
  EXPECT_EQ(written.out, "a b|none|3\n");
}

TEST(Child, InheritsNoOtherDescriptorAndHasASessionOfItsOwn) {
  const Descriptor ours(::fcntl(0, F_DUPFD_CLOEXEC, 100));
  ASSERT_TRUE(ours.open());
  Written written;
  RunScript("test -e /proc/$$/fd/" + std::to_string(ours.get()) + " && echo leaked; exit 0",
            &written);
  EXPECT_EQ(written.out, "");
  StartScript("echo $$; sleep 600", &written);
  EXPECT_EQ(::getsid(Number(written.out)), Number(written.out));
}

TEST(Child, WaitsNoLongerThanTheDeadline) {
  Written written;
  StartScript("echo ready; sleep 600", &written);
  EXPECT_FALSE(written.child->Poll(steady_clock::now()));
  EXPECT_FALSE(written.child->Wait(steady_clock::now()));
  EXPECT_FALSE(written.child->ended());
  written.child->Stop(std::chrono::milliseconds(0));
  EXPECT_TRUE(written.child->ended());
}

TEST(Child, ReadsUntilItsInputIsClosed) {
  Written written;
  ChildOptions options;
  options.input = true;
  options.command = {"cat"};
  options.out = [&written](std::string_view text) { written.out.append(text); };
  Result<std::unique_ptr<Child>> started = Child::Start(std::move(options));
  ASSERT_TRUE(started.ok());
  Child& cat = *started.value();
  ASSERT_TRUE(cat.Write("a line\n", Limit()).ok());
  while (written.out != "a line\n") ASSERT_TRUE(cat.Poll(Limit()));
  cat.CloseInput();
  EXPECT_TRUE(cat.Wait(Limit()));
  EXPECT_EQ(cat.status(), 0);
  EXPECT_EQ(cat.Write("more", Limit()).code(), ErrorCode::kPeerLost);
}

TEST(Child, AReaderThatIsGoneDoesNotEndUs) {
  Written written;
  ChildOptions options;
  options.input = true;
  RunScript("exec 0</dev/null; echo closed", &written, std::move(options));
  EXPECT_EQ(written.child->Write("text", Limit()).code(), ErrorCode::kPeerLost);
}

TEST(Child, DoesNotWaitForAReaderThatDoesNotRead) {
  Written written;
  ChildOptions options;
  options.input = true;
  StartScript("echo ready; sleep 600", &written, std::move(options));
  const std::string much(size_t{4} << 20, 'x');
  EXPECT_EQ(written.child->Write(much, steady_clock::now()).code(), ErrorCode::kTimeout);
}

TEST(Child, IsAskedBeforeItIsKilled) {
  Written written;
  StartScript("trap 'exit 5' TERM; echo ready; while :; do sleep 0.05; done", &written);
  written.child->Stop(minutes(2));
  EXPECT_EQ(written.child->status(), 5);
}

TEST(Child, StopReachesDescendantsThatIgnoreTheRequest) {
  Written written;
  StartScript("(trap '' TERM; echo ready; while :; do sleep 0.05; done) & echo $!; wait", &written);
  const std::string& out = written.out;
  const auto digit = [&out] { return out.find_first_of("0123456789"); };
  while (digit() == std::string::npos || out.find("ready") == std::string::npos) {
    ASSERT_TRUE(written.child->Poll(Limit()));
  }
  written.child->Stop(std::chrono::milliseconds(0));
  EXPECT_TRUE(written.child->ended());
  WaitUntilGone(Number(out.substr(digit())));
}

TEST(Child, TheDestructorStopsIt) {
  Written written;
  StartScript("echo $$; sleep 600", &written);
  const pid_t pid = Number(written.out);
  written.child.reset();
  EXPECT_TRUE(Gone(pid));
}

TEST(BoundedText, KeepsBeginningAndEndOfALongOutput) {
  BoundedText text(100);
  for (int i = 0; i < 1000; ++i) text.Add("line " + std::to_string(i) + "\n");
  const std::string kept = text.Text();
  EXPECT_LT(kept.size(), 400u);
  EXPECT_EQ(kept.substr(0, 7), "line 0\n");
  EXPECT_NE(kept.find("\n...\n"), std::string::npos);
  EXPECT_EQ(text.Tail(2), "line 998\nline 999");
}

TEST(BoundedText, LimitsWhatAProgramWrites) {
  BoundedText text(1000);
  ChildOptions options;
  options.command = {"head", "-c", "10000000", "/dev/zero"};
  options.out = [&text](std::string_view piece) { text.Add(piece); };
  const Result<std::unique_ptr<Child>> child = Child::Start(std::move(options));
  ASSERT_TRUE(child.ok());
  ASSERT_TRUE(child.value()->Wait(Limit()));
  EXPECT_EQ(child.value()->status(), 0);
  EXPECT_GE(text.Text().size(), 2000u);
  EXPECT_LT(text.Text().size(), 4000u);
}

std::string StatText(const std::string& name) {
  return "42 (" + name + ") S 4 5 6 7 -1 9 10 11 12 13 14 15 16 17 18 19 3 21 22 23 24 25\n";
}

TEST(ParseStat, ANameMayContainAnything) {
  for (const std::string name : {"a", "", "a b", ") R 1 1 1 (", "(((", ")) )"}) {
    const std::optional<ProcessStat> stat = ParseStat(StatText(name));
    ASSERT_TRUE(stat.has_value()) << name;
    EXPECT_EQ(stat->name, name);
    EXPECT_EQ(stat->state, 'S');
    EXPECT_EQ(stat->Number(4), 4u);
    EXPECT_EQ(stat->Number(6), 6u);
    EXPECT_EQ(stat->Number(8), 0u);  // -1
    EXPECT_EQ(stat->Number(20), 3u);
    EXPECT_EQ(stat->Number(24), 24u);
    EXPECT_EQ(stat->Number(99), 0u);
    EXPECT_EQ(stat->Number(3), 0u);
  }
}

TEST(ParseStat, RefusesDamagedText) {
  for (const char* text :
       {"", "42", "42 (a S 1 1", "42 a) S 1", "42 )a( S 1", "42 (a)", "42 (a) S"}) {
    EXPECT_FALSE(ParseStat(text).has_value()) << text;
  }
}

TEST(MembersOf, FindsEveryGroupOfASession) {
  Result<Pipe> made = MakePipe();
  ASSERT_TRUE(made.ok());
  const Pipe ready = std::move(made).value();
  const pid_t leader = ::fork();
  if (leader == 0) {
    ::setsid();
    ::alarm(60);
    if (::fork() == 0) {
      ::setpgid(0, 0);
      ::alarm(60);
    }
    (void)!::write(ready.write.get(), "x", 1);
    while (true) ::pause();
  }
  ASSERT_GT(leader, 0);
  char bytes[2];
  for (char& byte : bytes) ASSERT_EQ(::read(ready.read.get(), &byte, 1), 1);

  const std::vector<SessionProcess> members = MembersOf({leader});
  ASSERT_EQ(members.size(), 2U);
  EXPECT_NE(members[0].group, members[1].group);
  EXPECT_EQ(SignalSessions({leader}, SIGKILL), 2U);
  int status = 0;
  ASSERT_EQ(::waitpid(leader, &status, 0), leader);
  EXPECT_TRUE(WIFSIGNALED(status));
}

TEST(DescendantsOf, FindsOtherSessionsToo) {
  Result<Pipe> made = MakePipe();
  ASSERT_TRUE(made.ok());
  const Pipe ready = std::move(made).value();
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);
    if (::fork() == 0) {
      ::setsid();
      ::alarm(60);
      (void)!::write(ready.write.get(), "x", 1);
    }
    while (true) ::pause();
  }
  ASSERT_GT(child, 0);
  char byte = 0;
  ASSERT_EQ(::read(ready.read.get(), &byte, 1), 1);

  const std::vector<Descendant> below = DescendantsOf(child, 0);
  ASSERT_EQ(below.size(), 1U);
  EXPECT_EQ(below[0].parent, child);
  EXPECT_EQ(below[0].session, below[0].pid);
  EXPECT_FALSE(below[0].ended);
  EXPECT_TRUE(DescendantsOf(child, below[0].pid).empty());
  ASSERT_EQ(::kill(below[0].pid, SIGKILL), 0);
  // Its parent does not reap it.
  bool ended = false;
  for (int i = 0; i < 6000 && !ended; ++i) {
    ended = DescendantsOf(child, 0).at(0).ended;
    ::usleep(10000);
  }
  EXPECT_TRUE(ended);
  ASSERT_EQ(::kill(child, SIGKILL), 0);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
}

}  // namespace
}  // namespace diapason::process
