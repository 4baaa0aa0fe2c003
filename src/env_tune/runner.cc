#include "env_tune/runner.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <map>

#include "base/clock.h"
#include "base/file.h"
#include "base/root_fs.h"
#include "base/text.h"

extern char** environ;

namespace diapason::env_tune {
namespace {

constexpr double kGrace = 2;
constexpr int kPollMs = 20;       // how soon a request to stop is seen
constexpr int kPollBlindMs = 1;   // where the kernel cannot tell us of the end
constexpr double kDrainMost = 1;  // seconds for what a program left in its pipes

struct OutputPipe {
  int read = -1;
  int write = -1;
  bool Open() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return false;
    read = ends[0];
    write = ends[1];
    return true;
  }
  ~OutputPipe() {
    if (read >= 0) ::close(read);
    if (write >= 0) ::close(write);
  }
  void Close(int* fd) {
    if (*fd >= 0) ::close(*fd);
    *fd = -1;
  }
};

std::vector<std::string> Variables(const EnvVars& settings) {
  std::map<std::string, std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const size_t mark = text.find('=');
    if (mark != std::string::npos) all[text.substr(0, mark)] = text.substr(mark + 1);
  }
  for (const auto& [name, value] : settings) all[name] = value;
  std::vector<std::string> texts;
  texts.reserve(all.size());
  for (const auto& [name, value] : all) texts.push_back(name + "=" + value);
  return texts;
}

std::vector<char*> Pointers(std::vector<std::string>* texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts->size() + 1);
  for (std::string& text : *texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// In the new process, between fork and exec: system calls only.
[[noreturn]] void Become(char* const* words, char* const* variables, int out, int err, int failure,
                         pid_t parent) {
  ::setsid();
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);
  const int nothing = ::open("/dev/null", O_RDONLY);
  if (nothing >= 0) ::dup2(nothing, STDIN_FILENO);
  ::dup2(out, STDOUT_FILENO);
  ::dup2(err, STDERR_FILENO);
  for (const int signal : {SIGINT, SIGTERM, SIGPIPE, SIGHUP}) ::signal(signal, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::execvpe(words[0], words, variables);
  const int error = errno;
  (void)!::write(failure, &error, sizeof(error));
  ::_exit(127);
}

// Sends a signal to all processes of a session except zombies; how many there were. Programs make
// process groups of their own (mpirun does), but seldom sessions.
int SignalSession(pid_t session, int signal) {
  const RootFs tree;
  int count = 0;
  for (const std::string& name : tree.List("/proc")) {
    uint64_t pid = 0;
    if (!ParseUnsigned(name, &pid)) continue;
    const std::optional<std::string> stat = tree.Read("/proc/" + name + "/stat");
    if (!stat) continue;
    // The name in parentheses may hold anything; what follows the last one is regular.
    const size_t end = stat->rfind(')');
    char state = 0;
    int parent = 0;
    int group = 0;
    int of = 0;
    if (end == std::string::npos ||
        std::sscanf(stat->c_str() + end + 1, " %c %d %d %d", &state, &parent, &group, &of) != 4) {
      continue;
    }
    if (of != session || state == 'Z' || state == 'X') continue;
    ++count;
    ::kill(static_cast<pid_t>(pid), signal);
  }
  return count;
}

void EndSession(pid_t session) {
  if (SignalSession(session, SIGTERM) == 0) return;
  const double until = SteadySeconds() + kGrace;
  while (SteadySeconds() < until) {
    ::usleep(20000);
    if (SignalSession(session, 0) == 0) return;
  }
  SignalSession(session, SIGKILL);
}

// Takes what there is; false at its end.
bool Take(int fd, BoundedText* text, bool show) {
  char block[65536];
  const ssize_t got = ::read(fd, block, sizeof(block));
  if (got > 0) {
    text->Add(block, static_cast<size_t>(got));
    if (show) (void)!::write(STDERR_FILENO, block, static_cast<size_t>(got));
    return true;
  }
  return got < 0 && (errno == EAGAIN || errno == EINTR);
}

// Until it ends, or has to.
void Follow(pid_t pid, int exit_fd, OutputPipe* out, OutputPipe* err, const CommandOptions& options,
            double started, CommandRun* run) {
  rusage usage{};
  int status = 0;
  while (true) {
    pollfd fds[3] = {{out->read, POLLIN, 0}, {err->read, POLLIN, 0}, {exit_fd, POLLIN, 0}};
    const bool blind = exit_fd < 0;
    (void)::poll(fds, 3, blind ? kPollBlindMs : kPollMs);
    for (const auto& [pipe, text, at] :
         {std::tuple{out, &run->out, &fds[0]}, std::tuple{err, &run->err, &fds[1]}}) {
      if (pipe->read < 0 || (at->revents & (POLLIN | POLLHUP | POLLERR)) == 0) continue;
      if (!Take(pipe->read, text, options.show)) pipe->Close(&pipe->read);
    }
    const pid_t got = ::wait4(pid, &status, WNOHANG, &usage);
    if (got != 0) break;
    const double now = SteadySeconds();
    const bool late = options.timeout_s > 0 && now - started > options.timeout_s;
    const bool stopped = options.stop != nullptr && options.stop->load();
    if (!late && !stopped) continue;
    run->timed_out = late;
    run->interrupted = stopped;
    EndSession(pid);
    ::kill(pid, SIGKILL);
    (void)::wait4(pid, &status, 0, &usage);
    break;
  }
  run->wall_s = SteadySeconds() - started;
  run->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  run->cpu_s = seconds(usage.ru_utime) + seconds(usage.ru_stime);
  run->memory = static_cast<double>(usage.ru_maxrss) * 1024;
}

// What is still in a pipe. Somebody in the background may hold it open for ever.
void Drain(OutputPipe* pipe, BoundedText* text, bool show) {
  const double until = SteadySeconds() + kDrainMost;
  while (pipe->read >= 0 && SteadySeconds() < until) {
    pollfd fd = {pipe->read, POLLIN, 0};
    if (::poll(&fd, 1, 0) <= 0) return;
    if (!Take(pipe->read, text, show)) return;
  }
}

}  // namespace

void BoundedText::Add(const char* text, size_t size) {
  const size_t room = std::min(size, half_ - std::min(half_, head_.size()));
  head_.append(text, room);
  tail_.append(text + room, size - room);
  if (tail_.size() > 2 * half_) {
    tail_.erase(0, tail_.size() - half_);
    cut_ = true;
  }
}

std::string BoundedText::Text() const { return head_ + (cut_ ? "\n...\n" : "") + tail_; }

std::string BoundedText::Tail(size_t lines) const {
  const std::string text = tail_.size() > 65536 ? tail_.substr(tail_.size() - 65536) : Text();
  size_t begin = text.size();
  while (begin > 0 && text[begin - 1] == '\n') --begin;
  const size_t end = begin;
  for (size_t found = 0; begin > 0; --begin) {
    if (text[begin - 1] == '\n' && ++found == lines) break;
  }
  constexpr size_t kLongestTail = 4096;
  begin = end - begin > kLongestTail ? end - kLongestTail : begin;
  return text.substr(begin, end - begin);
}

Result<CommandRun> RunCommand(const std::vector<std::string>& command, const EnvVars& settings,
                              const CommandOptions& options) {
  if (command.empty()) return Invalid("no command to run");
  OutputPipe out;
  OutputPipe err;
  OutputPipe failure;
  if (!out.Open() || !err.Open() || !failure.Open()) {
    return IoError("cannot make a pipe: " + ErrnoText(errno));
  }
  std::vector<std::string> words = command;
  std::vector<std::string> variables = Variables(settings);
  const std::vector<char*> word_pointers = Pointers(&words);
  const std::vector<char*> variable_pointers = Pointers(&variables);
  const pid_t parent = ::getpid();
  const double started = SteadySeconds();
  const pid_t pid = ::fork();
  if (pid < 0) return IoError("cannot start a process: " + ErrnoText(errno));
  if (pid == 0) {
    Become(word_pointers.data(), variable_pointers.data(), out.write, err.write, failure.write,
           parent);
  }
  out.Close(&out.write);
  err.Close(&err.write);
  failure.Close(&failure.write);
  int error = 0;
  if (::read(failure.read, &error, sizeof(error)) == sizeof(error)) {
    ::waitpid(pid, nullptr, 0);
    return Unavailable("cannot start '" + command[0] + "': " + ErrnoText(error));
  }
  for (const int fd : {out.read, err.read}) ::fcntl(fd, F_SETFL, O_NONBLOCK);
  const int exit_fd = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
  CommandRun run;
  Follow(pid, exit_fd, &out, &err, options, started, &run);
  if (exit_fd >= 0) ::close(exit_fd);
  Drain(&out, &run.out, options.show);
  Drain(&err, &run.err, options.show);
  if (run.status != 0 && !run.timed_out && !run.interrupted) EndSession(pid);
  return run;
}

}  // namespace diapason::env_tune
