#include "process/child.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/file.h"
#include "process/sessions.h"

namespace diapason::process {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kGrace{3000};
constexpr milliseconds kDrain{1000};
constexpr milliseconds kLook{20};  // how often to look for processes whose end is not reported

// Reads once; closes at the end.
void Take(Descriptor* from, const std::function<void(std::string_view)>& taker) {
  char block[65536];
  const ssize_t got = ::read(from->get(), block, sizeof(block));
  if (got > 0) {
    if (taker) taker(std::string_view(block, static_cast<size_t>(got)));
  } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
    from->Close();
  }
}

}  // namespace

Result<std::unique_ptr<Child>> Child::Start(ChildOptions options) {
  std::unique_ptr<Child> child(new Child(std::move(options)));
  Pipe pipes[3];
  SpawnOptions spawn;
  spawn.command = child->options_.command;
  spawn.environment = ChangedEnvironment(child->options_.environment);
  for (int i = child->options_.input ? 0 : 1; i < 3; ++i) {
    ASSIGN_OR_RETURN(pipes[i], MakePipe());
    spawn.streams[i] = (i == 0 ? pipes[i].read : pipes[i].write).get();
    (void)::fcntl((i == 0 ? pipes[i].write : pipes[i].read).get(), F_SETFL, O_NONBLOCK);
  }
  ASSIGN_OR_RETURN(const pid_t pid, Spawn(spawn));
  child->pid_ = pid;
  child->ended_ = false;
  child->in_ = std::move(pipes[0].write);
  child->out_ = std::move(pipes[1].read);
  child->err_ = std::move(pipes[2].read);
  child->exit_ = Descriptor(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  return child;
}

Child::~Child() {
  if (!ended_) Stop(kGrace);
}

Status Child::Write(std::string_view text, Deadline deadline) {
  if (!in_.open()) return PeerLost("the program takes no more input");
  // A reader that is gone must not end us.
  sigset_t pipe_only;
  sigset_t before;
  ::sigemptyset(&pipe_only);
  ::sigaddset(&pipe_only, SIGPIPE);
  ::pthread_sigmask(SIG_BLOCK, &pipe_only, &before);
  int error = 0;
  while (error == 0 && !text.empty()) {
    pollfd room = {in_.get(), POLLOUT, 0};
    const bool late = ::poll(&room, 1, MillisecondsTo(deadline)) == 0;
    const ssize_t written = late ? 0 : ::write(in_.get(), text.data(), text.size());
    if (written < 0 && errno != EINTR && errno != EAGAIN) error = errno;
    if (written > 0) text.remove_prefix(static_cast<size_t>(written));
    if (late) error = EAGAIN;
  }
  if (error == EPIPE) {
    const timespec now{};
    (void)::sigtimedwait(&pipe_only, nullptr, &now);
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (error == EAGAIN) return TimedOut("the program does not read its input");
  if (error != 0) return PeerLost("the program takes no more input: " + ErrnoText(error));
  return {};
}

bool Child::Poll(Deadline deadline) {
  pollfd fds[3] = {
      {out_.get(), POLLIN, 0}, {err_.get(), POLLIN, 0}, {ended_ ? -1 : exit_.get(), POLLIN, 0}};
  const int wait = MillisecondsTo(deadline);
  const bool blind = !ended_ && !exit_.open();
  const int ready = ::poll(fds, 3, blind ? std::min(wait, 1) : wait);
  if (fds[0].revents != 0) Take(&out_, options_.out);
  if (fds[1].revents != 0) Take(&err_, options_.err);
  if (blind || fds[2].revents != 0) Reap();
  return ready != 0 || wait != 0;
}

void Child::Reap() {
  int status = 0;
  const pid_t got = ended_ ? 0 : ::wait4(pid_, &status, WNOHANG, &usage_);
  if (got == 0 || (got < 0 && errno == EINTR)) return;
  ended_ = true;
  status_ = got < 0 ? 1 : WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

bool Child::Wait(Deadline deadline) {
  while (!ended_) {
    if (!Poll(deadline)) return ended_;
  }
  return true;
}

void Child::Drain() {
  const Deadline limit = steady_clock::now() + kDrain;
  while ((out_.open() || err_.open()) && steady_clock::now() < limit) {
    if (!Poll(steady_clock::now())) return;
  }
}

void Child::Stop(milliseconds grace) {
  in_.Close();
  const std::vector<pid_t> session = {pid_};
  (void)SignalSessions(session, SIGTERM);
  const Deadline limit = steady_clock::now() + grace;
  const auto left = [&] { return SignalSessions(session, 0) > 0 || !ended_; };
  bool some = left();
  for (; some && steady_clock::now() < limit; some = left()) {
    (void)Poll(std::min(limit, steady_clock::now() + kLook));
  }
  if (!some) return;
  (void)SignalSessions(session, SIGKILL);
  // A process that the kernel itself holds cannot be waited for.
  (void)Wait(steady_clock::now() + kGrace);
}

void BoundedText::Add(std::string_view text) {
  const size_t room = std::min(text.size(), half_ - std::min(half_, head_.size()));
  head_.append(text.substr(0, room));
  tail_.append(text.substr(room));
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

}  // namespace diapason::process
