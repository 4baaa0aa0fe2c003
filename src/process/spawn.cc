#include "process/spawn.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "base/descriptor.h"
#include "base/environment.h"
#include "base/file.h"
#include "base/text.h"

extern char** environ;  // NOLINT: POSIX declares it in no header

namespace diapason::process {
namespace {

std::vector<char*> Pointers(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

void ResetSignals() {
  for (const int signal : {SIGINT, SIGTERM, SIGPIPE, SIGHUP}) (void)::signal(signal, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  (void)::sigprocmask(SIG_SETMASK, &none, nullptr);
}

// In the new process, between fork and exec: system calls only.
[[noreturn]] void Become(const SpawnOptions& options, char* const* arguments, char** environment,
                         int failure, pid_t parent) {
  (void)::setsid();
  (void)::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // We may have ended before the kernel was told.
  if (::getppid() != parent) ::_exit(127);
  // First away from the three places, where one stream could overwrite another.
  int from[3];
  for (int i = 0; i < 3; ++i) {
    const int given = options.streams[i];
    from[i] = ::fcntl(given == kNowhere ? ::open("/dev/null", O_RDWR | O_CLOEXEC) : given,
                      F_DUPFD_CLOEXEC, 3);
  }
  for (int i = 0; i < 3; ++i) {
    if (from[i] >= 0) (void)::dup2(from[i], i);
  }
  if (options.prepare) {
    options.prepare();
  } else {
    ResetSignals();
  }
  environ = environment;
  (void)::execvp(arguments[0], arguments);
  const int error = errno;
  (void)!::write(failure, &error, sizeof(error));
  ::_exit(127);
}

// False: nothing came, and nobody closed the other end, by the deadline.
bool WaitReadable(int fd, Deadline deadline) {
  pollfd wait{fd, POLLIN, 0};
  for (;;) {
    const int ready = ::poll(&wait, 1, MillisecondsTo(deadline));
    if (ready > 0 || (ready < 0 && errno != EINTR)) return true;
    if (ready == 0 && std::chrono::steady_clock::now() >= deadline) return false;
  }
}

// Kills it, and reaps it if it dies at once.
void Abandon(pid_t pid) {
  (void)::kill(pid, SIGKILL);
  for (int i = 0; i < 100 && ::waitpid(pid, nullptr, WNOHANG) == 0; ++i) ::usleep(10000);
}

}  // namespace

Result<pid_t> Spawn(const SpawnOptions& options, int* exec_error) {
  if (exec_error != nullptr) *exec_error = 0;
  if (options.command.empty()) return Invalid("no command to start");
  ASSIGN_OR_RETURN(Pipe failure, MakePipe());
  const std::vector<char*> arguments = Pointers(options.command);
  std::vector<char*> environment = Pointers(options.environment);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return IoError("cannot start a process: " + ErrnoText(errno));
  if (pid == 0) {
    Become(options, arguments.data(), environment.data(), failure.write.get(), parent);
  }
  // The end of the pipe comes with exec, which closes it.
  failure.write.Close();
  if (!WaitReadable(failure.read.get(), std::chrono::steady_clock::now() + options.exec_limit)) {
    Abandon(pid);
    return TimedOut(Format("'{}' was not started within {} s: does its file system answer?",
                           options.command[0],
                           std::chrono::duration<double>(options.exec_limit).count()));
  }
  int error = 0;
  ssize_t got = 0;
  while ((got = ::read(failure.read.get(), &error, sizeof(error))) < 0 && errno == EINTR) {
  }
  if (got != sizeof(error)) return pid;
  (void)::waitpid(pid, nullptr, 0);
  if (exec_error != nullptr) *exec_error = error;
  return Unavailable("cannot start '" + options.command[0] + "': " + ErrnoText(error));
}

std::vector<std::string> ChangedEnvironment(const EnvironmentChanges& changes) {
  EnvironmentChanges all = changes;
  const Environment& ours = ProcessEnvironment();
  for (const std::string& name : ours.Names()) all.emplace(name, ours.Get(name));
  std::vector<std::string> texts;
  for (const auto& [name, value] : all) {
    if (value) texts.push_back(name + "=" + *value);
  }
  return texts;
}

}  // namespace diapason::process
