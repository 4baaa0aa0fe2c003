#include "agree/quiet_signal.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

namespace diapason::agree {
namespace {

// In a child, whose end by a signal the test can see.
template <typename Body>
int StatusOf(const Body& body) {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(body());
  int status = 0;
  ::waitpid(pid, &status, 0);
  return status;
}

int WriteToNobody() {
  int ends[2];
  if (::pipe(ends) != 0) return 9;
  ::close(ends[0]);
  return ::write(ends[1], "x", 1) == -1 && errno == EPIPE ? 0 : 1;
}

TEST(QuietSignal, KeepsTheSignalOfACallFromTheProcess) {
  EXPECT_EQ(StatusOf([] {
              const QuietSignal quiet(SIGPIPE);
              return WriteToNobody();
            }),
            0);
  // And only while in scope.
  EXPECT_TRUE(WIFSIGNALED(StatusOf([] {
    { const QuietSignal quiet(SIGPIPE); }
    return WriteToNobody();
  })));
}

TEST(QuietSignal, KeepsWhatWasPendingBefore) {
  EXPECT_EQ(StatusOf([] {
              sigset_t pipe;
              sigemptyset(&pipe);
              sigaddset(&pipe, SIGPIPE);
              pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
              ::raise(SIGPIPE);
              { const QuietSignal quiet(SIGPIPE); }
              sigset_t pending;
              sigpending(&pending);
              return sigismember(&pending, SIGPIPE) == 1 ? 0 : 1;
            }),
            0);
}

}  // namespace
}  // namespace diapason::agree
