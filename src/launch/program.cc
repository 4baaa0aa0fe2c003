#include "launch/program.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <map>
#include <thread>

#include "base/file.h"
#include "base/text.h"

extern char** environ;

namespace diapason::launch {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr size_t kErrorLines = 12;
constexpr size_t kLongestLine = 4096;
constexpr size_t kMostPending = size_t{64} << 20;
constexpr milliseconds kGrace{3000};

struct PipeEnds {
  int read = -1;
  int write = -1;
  bool Open() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return false;
    read = ends[0];
    write = ends[1];
    return true;
  }
};

void Close(int* fd) {
  if (*fd >= 0) ::close(*fd);
  *fd = -1;
}

std::vector<std::string> Environment(
    const std::vector<std::pair<std::string, std::string>>& changes) {
  std::map<std::string, std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const size_t mark = text.find('=');
    if (mark != std::string::npos) all[text.substr(0, mark)] = text.substr(mark + 1);
  }
  for (const auto& [name, value] : changes) {
    if (value.empty()) {
      all.erase(name);
    } else {
      all[name] = value;
    }
  }
  std::vector<std::string> texts;
  texts.reserve(all.size());
  for (const auto& [name, value] : all) texts.push_back(name + "=" + value);
  return texts;
}

std::vector<char*> Pointers(std::vector<std::string>* texts) {
  std::vector<char*> pointers;
  for (std::string& text : *texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// In the new process, between fork and exec: system calls only.
[[noreturn]] void Become(char* const* arguments, char* const* environment, const PipeEnds& in,
                         const PipeEnds& out, const PipeEnds& err, const PipeEnds& failure,
                         pid_t parent) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);
  ::dup2(in.read, STDIN_FILENO);
  ::dup2(out.write, STDOUT_FILENO);
  ::dup2(err.write, STDERR_FILENO);
  for (const int signal : {SIGINT, SIGTERM, SIGPIPE, SIGHUP}) ::signal(signal, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::execvpe(arguments[0], arguments, environment);
  const int error = errno;
  (void)!::write(failure.write, &error, sizeof(error));
  ::_exit(127);
}

}  // namespace

Result<std::unique_ptr<Program>> Program::Start(
    const std::vector<std::string>& command,
    const std::vector<std::pair<std::string, std::string>>& environment) {
  if (command.empty()) return Invalid("no command to start");
  PipeEnds in;
  PipeEnds out;
  PipeEnds err;
  PipeEnds failure;
  const bool open = in.Open() && out.Open() && err.Open() && failure.Open();
  const int open_error = errno;
  std::vector<std::string> words = command;
  std::vector<std::string> variables = Environment(environment);
  const std::vector<char*> arguments = Pointers(&words);
  const std::vector<char*> values = Pointers(&variables);
  const pid_t parent = ::getpid();
  const pid_t pid = open ? ::fork() : -1;
  const int fork_error = open ? errno : open_error;
  if (pid == 0) {
    Become(arguments.data(), values.data(), in, out, err, failure, parent);
  }
  for (int* fd : {&in.read, &out.write, &err.write, &failure.write}) Close(fd);
  int error = pid < 0 ? fork_error : 0;
  if (pid > 0 && ::read(failure.read, &error, sizeof(error)) != sizeof(error)) error = 0;
  Close(&failure.read);
  if (error != 0) {
    if (pid > 0) ::waitpid(pid, nullptr, 0);
    for (int* fd : {&in.write, &out.read, &err.read}) Close(fd);
    return Unavailable("cannot start '" + command[0] + "': " + ErrnoText(error));
  }
  for (const int fd : {out.read, err.read}) ::fcntl(fd, F_SETFL, O_NONBLOCK);
  return std::unique_ptr<Program>(new Program(pid, in.write, out.read, err.read));
}

Program::~Program() {
  Stop();
  for (int* fd : {&in_, &out_, &err_}) Close(fd);
}

Status Program::WriteLine(const std::string& line) {
  if (in_ < 0) return PeerLost("the program takes no more input");
  const std::string text = line + "\n";
  // A reader that is gone must not end us.
  sigset_t pipe_only;
  sigset_t before;
  sigemptyset(&pipe_only);
  sigaddset(&pipe_only, SIGPIPE);
  ::pthread_sigmask(SIG_BLOCK, &pipe_only, &before);
  size_t at = 0;
  int error = 0;
  while (at < text.size()) {
    const ssize_t written = ::write(in_, text.data() + at, text.size() - at);
    if (written > 0) {
      at += static_cast<size_t>(written);
    } else if (errno != EINTR) {
      error = errno;
      break;
    }
  }
  if (error == EPIPE) {
    const timespec now{};
    (void)::sigtimedwait(&pipe_only, nullptr, &now);
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (error != 0) return PeerLost("the program takes no more input: " + ErrnoText(error));
  return {};
}

void Program::TakeErrors(const char* text, size_t size) {
  partial_.append(text, size);
  size_t end = 0;
  while ((end = partial_.find('\n')) != std::string::npos || partial_.size() > kLongestLine) {
    end = std::min(end, kLongestLine);
    errors_.push_back(partial_.substr(0, end));
    partial_.erase(0, std::min(end + 1, partial_.size()));
    if (errors_.size() > kErrorLines) errors_.pop_front();
  }
}

bool Program::Pump(Deadline deadline) {
  pollfd fds[2] = {{out_, POLLIN, 0}, {err_, POLLIN, 0}};
  const auto left = std::chrono::duration_cast<milliseconds>(deadline - steady_clock::now());
  const int wait = static_cast<int>(std::clamp<int64_t>(left.count(), 0, 1000000));
  const int ready = ::poll(fds, 2, wait);
  if (ready == 0 && wait == 0) return false;
  char block[65536];
  for (pollfd& fd : fds) {
    if (fd.fd < 0 || (fd.revents & (POLLIN | POLLHUP | POLLERR)) == 0) continue;
    const ssize_t got = ::read(fd.fd, block, sizeof(block));
    if (got > 0) {
      if (fd.fd == out_) {
        text_.append(block, static_cast<size_t>(got));
      } else {
        TakeErrors(block, static_cast<size_t>(got));
      }
    } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
      Close(fd.fd == out_ ? &out_ : &err_);
    }
  }
  return true;
}

Result<std::string> Program::ReadLine(Deadline deadline) {
  while (true) {
    const size_t end = text_.find('\n');
    if (end != std::string::npos) {
      std::string line = text_.substr(0, end);
      text_.erase(0, end + 1);
      return line;
    }
    if (text_.size() > kMostPending) return Invalid("the program writes a line without an end");
    if (out_ < 0) return PeerLost("the program has ended");
    if (!Pump(deadline)) return TimedOut("the program has not answered");
  }
}

Result<std::string> Program::ReadAll(size_t most, Deadline deadline) {
  while (out_ >= 0) {
    if (text_.size() > most) return Invalid("the program writes too much");
    if (!Pump(deadline)) return TimedOut("the program has not ended");
  }
  return std::move(text_);
}

bool Program::Reap() {
  if (ended_) return true;
  int status = 0;
  const pid_t got = ::waitpid(pid_, &status, WNOHANG);
  if (got == 0) return false;
  ended_ = true;
  status_ = got < 0 ? 1 : (WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
  return true;
}

Result<int> Program::Finish(Deadline deadline) {
  Close(&in_);
  while (!Reap()) {
    if (steady_clock::now() > deadline) return TimedOut("the program does not end");
    if (out_ >= 0 || err_ >= 0) {
      (void)Pump(std::min(deadline, steady_clock::now() + milliseconds(20)));
    } else {
      std::this_thread::sleep_for(milliseconds(1));
    }
  }
  return status_;
}

void Program::Stop() {
  Close(&in_);
  if (Reap()) return;
  ::kill(-pid_, SIGTERM);
  if (Finish(steady_clock::now() + kGrace).ok()) return;
  ::kill(-pid_, SIGKILL);
  // A process that the kernel itself holds cannot be waited for.
  const Deadline limit = steady_clock::now() + kGrace;
  while (!Reap() && steady_clock::now() < limit) std::this_thread::sleep_for(milliseconds(1));
}

std::string Program::ErrorTail() {
  while (err_ >= 0 && Pump(steady_clock::now())) {
  }
  std::vector<std::string> lines(errors_.begin(), errors_.end());
  if (!partial_.empty()) lines.push_back(partial_);
  return Join(lines, "\n");
}

}  // namespace diapason::launch
