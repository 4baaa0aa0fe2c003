#include "launch/processes.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <new>

#include "base/file.h"
#include "base/text.h"
#include "launch/launch_secret.h"
#include "process/sessions.h"

namespace diapason::launch {
namespace {

// Signals of a launcher; see Job for what each does.
constexpr int kHandled[] = {SIGINT,  SIGTERM,  SIGHUP,  SIGQUIT, SIGUSR1,
                            SIGUSR2, SIGWINCH, SIGTSTP, SIGCONT};

}  // namespace

std::string SignalName(int signal) {
  struct Name {
    int number;
    const char* name;
  };
  static constexpr Name kNames[] = {
      {SIGHUP, "SIGHUP"},   {SIGINT, "SIGINT"},   {SIGQUIT, "SIGQUIT"}, {SIGILL, "SIGILL"},
      {SIGTRAP, "SIGTRAP"}, {SIGABRT, "SIGABRT"}, {SIGBUS, "SIGBUS"},   {SIGFPE, "SIGFPE"},
      {SIGKILL, "SIGKILL"}, {SIGUSR1, "SIGUSR1"}, {SIGSEGV, "SIGSEGV"}, {SIGUSR2, "SIGUSR2"},
      {SIGPIPE, "SIGPIPE"}, {SIGALRM, "SIGALRM"}, {SIGTERM, "SIGTERM"}, {SIGXCPU, "SIGXCPU"},
      {SIGXFSZ, "SIGXFSZ"}, {SIGSYS, "SIGSYS"},
  };
  for (const Name& name : kNames) {
    if (name.number == signal) return name.name;
  }
  return Format("signal {}", signal);
}

Status Signals::Take() {
  // A SIGCHLD that is ignored would take the ranks' exit statuses away.
  struct sigaction plain {};
  plain.sa_handler = SIG_DFL;
  (void)::sigaction(SIGCHLD, &plain, nullptr);
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  (void)::sigaction(SIGPIPE, &ignore, &pipe_before_);

  sigset_t handled;
  ::sigemptyset(&handled);
  ::sigaddset(&handled, SIGCHLD);
  for (const int signal : kHandled) {
    struct sigaction before {};
    const bool ignored = ::sigaction(signal, nullptr, &before) == 0 &&
                         before.sa_handler == SIG_IGN;  // NOLINT: the system's macro
    if (!ignored) ::sigaddset(&handled, signal);
  }
  sigset_t blocked = handled;
  // A launcher in the background may say something on its terminal.
  ::sigaddset(&blocked, SIGTTOU);
  if (::sigprocmask(SIG_BLOCK, &blocked, &before_) != 0) {
    return IoError("cannot block signals: " + ErrnoText(errno));
  }
  fd_ = Descriptor(::signalfd(-1, &handled, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd_.open()) return IoError("cannot watch signals: " + ErrnoText(errno));
  return {};
}

void Signals::Restore() const {
  (void)::sigaction(SIGPIPE, &pipe_before_, nullptr);
  (void)::sigprocmask(SIG_SETMASK, &before_, nullptr);
}

Starter::~Starter() {
  // Without Finish() something went wrong, and the keeper cleans up.
  life_.write.Close();
  if (keeper_ > 0) (void)::waitpid(keeper_, nullptr, 0);
  // What is started later has the same limits as what was started now.
  if (raised_) (void)::setrlimit(RLIMIT_NOFILE, &files_before_);
  if (sessions_ != nullptr) ::munmap(sessions_, sizeof(*sessions_) * static_cast<size_t>(ranks_));
}

Status Starter::Prepare() {
  if (::getrlimit(RLIMIT_NOFILE, &files_before_) == 0) {
    rlimit most = files_before_;
    most.rlim_cur = most.rlim_max;
    raised_ = ::setrlimit(RLIMIT_NOFILE, &most) == 0;
  }
  const size_t count = static_cast<size_t>(ranks_);
  void* memory = ::mmap(nullptr, sizeof(*sessions_) * count, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return IoError("no memory: " + ErrnoText(errno));
  sessions_ = static_cast<std::atomic<pid_t>*>(memory);
  for (size_t i = 0; i < count; ++i) new (&sessions_[i]) std::atomic<pid_t>(0);

  ASSIGN_OR_RETURN(life_, MakePipe());
  keeper_ = ::fork();
  if (keeper_ == 0) Keep();
  if (keeper_ < 0) return IoError("cannot start a process: " + ErrnoText(errno));
  life_.read.Close();
  return {};
}

void Starter::Keep() {
  sigset_t all;
  ::sigfillset(&all);
  (void)::sigprocmask(SIG_SETMASK, &all, nullptr);
  (void)::setsid();
  (void)::prctl(PR_SET_NAME, "diapason-keeper");
  life_.write.Close();
  const Descriptor null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  for (int fd = 0; fd <= 2; ++fd) (void)::dup2(null.get(), fd);
  char byte = 0;
  while (::read(life_.read.get(), &byte, 1) < 0 && errno == EINTR) {
  }
  if (secret_ != nullptr) secret_->Remove();
  std::vector<pid_t> sessions;
  for (int i = 0; i < ranks_; ++i) {
    if (const pid_t session = sessions_[i].load(); session > 0) sessions.push_back(session);
  }
  std::sort(sessions.begin(), sessions.end());
  // A process that is being started while its group is killed is found the next time.
  constexpr int kTimes = 100;
  for (int i = 0; i < kTimes && !sessions.empty(); ++i) {
    if (process::SignalSessions(sessions, SIGKILL) == 0) break;
    const timespec pause{0, 20'000'000};
    (void)::nanosleep(&pause, nullptr);
  }
  ::_exit(0);
}

Result<pid_t> Starter::Start(int rank, process::SpawnOptions options, int* exec_error) {
  std::atomic<pid_t>* session = &sessions_[rank];
  options.prepare = [this, session] {
    // By the rank itself, so that there is no moment in which it runs and the keeper does not know.
    session->store(::getpid());
    (void)::setrlimit(RLIMIT_NOFILE, &files_before_);
    signals_->Restore();
  };
  Result<pid_t> pid = process::Spawn(options, exec_error);
  if (!pid.ok()) session->store(0);
  return pid;
}

void Starter::Finish() {
  if (keeper_ <= 0) return;
  (void)::kill(keeper_, SIGKILL);
  while (::waitpid(keeper_, nullptr, 0) < 0 && errno == EINTR) {
  }
  keeper_ = -1;
}

}  // namespace diapason::launch
