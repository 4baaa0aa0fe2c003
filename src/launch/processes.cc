#include "launch/processes.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <new>

#include "base/file.h"
#include "base/text.h"
#include "launch/launch_secret.h"

extern char** environ;  // NOLINT: POSIX declares it in no header

namespace diapason::launch {
namespace {

// Signals of a launcher; see Job for what each does.
constexpr int kHandled[] = {SIGINT,  SIGTERM,  SIGHUP,  SIGQUIT, SIGUSR1,
                            SIGUSR2, SIGWINCH, SIGTSTP, SIGCONT};

// Session and group of a process that is alive, from "PID (NAME) STATE PARENT GROUP SESSION ...";
// the name may hold anything, parentheses too.
bool ReadStat(const char* pid, pid_t* group, pid_t* session) {
  const Fd file(::open(Format("/proc/%s/stat", pid).c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.open()) return false;
  char text[512];
  const ssize_t size = ::read(file.get(), text, sizeof(text) - 1);
  if (size <= 0) return false;
  text[size] = '\0';
  const char* name_end = std::strrchr(text, ')');
  if (name_end == nullptr) return false;
  char state = '\0';
  int parent = 0;
  int threads = 0;
  if (std::sscanf(
          name_end + 1,
          " %c %d %d %d %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %d",  // NOLINT: the
                                                                                  // kernel's
                                                                                  // numbers fit
          &state, &parent, group, session, &threads) != 5) {
    return false;
  }
  // A process whose first thread has ended looks like a zombie while its others run.
  return (state != 'Z' && state != 'X') || threads > 1;
}

}  // namespace

Fd& Fd::operator=(Fd&& other) noexcept {
  if (this != &other) {
    Close();
    fd_ = other.Release();
  }
  return *this;
}

int Fd::Release() {
  const int fd = fd_;
  fd_ = -1;
  return fd;
}

void Fd::Close() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

Result<Pipe> MakePipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return IoError("cannot make a pipe: " + ErrnoText(errno));
  return Pipe{Fd(ends[0]), Fd(ends[1])};
}

int StatusOfStartError(int error) { return error == ENOENT || error == ENOTDIR ? 127 : 126; }

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
  return Format("signal %d", signal);
}

std::vector<SessionProcess> MembersOf(const std::vector<pid_t>& sessions) {
  std::vector<SessionProcess> members;
  DIR* folder = ::opendir("/proc");
  if (folder == nullptr) return members;
  while (const dirent* entry = ::readdir(folder)) {
    uint64_t pid = 0;
    pid_t group = 0;
    pid_t session = 0;
    if (!ParseUnsigned(entry->d_name, &pid) || !ReadStat(entry->d_name, &group, &session)) continue;
    if (std::binary_search(sessions.begin(), sessions.end(), session)) {
      members.push_back({static_cast<pid_t>(pid), group});
    }
  }
  ::closedir(folder);
  return members;
}

size_t SignalSessions(const std::vector<pid_t>& sessions, int signal) {
  const std::vector<SessionProcess> members = MembersOf(sessions);
  // The sessions' first groups need no /proc, and so are reached without one too.
  std::vector<pid_t> groups = sessions;
  for (const SessionProcess& member : members) groups.push_back(member.group);
  std::sort(groups.begin(), groups.end());
  groups.erase(std::unique(groups.begin(), groups.end()), groups.end());
  for (const pid_t group : groups) {
    if (group > 1) (void)::kill(-group, signal);
  }
  return members.size();
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
  fd_ = Fd(::signalfd(-1, &handled, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd_.open()) return IoError("cannot watch signals: " + ErrnoText(errno));
  return {};
}

void Signals::Restore() const {
  (void)::sigaction(SIGPIPE, &pipe_before_, nullptr);
  (void)::sigprocmask(SIG_SETMASK, &before_, nullptr);
}

Starter::Starter(std::vector<std::string> command, int ranks, const Signals* signals,
                 std::shared_ptr<const LaunchSecret> secret)
    : command_(std::move(command)),
      ranks_(ranks),
      signals_(signals),
      secret_(std::move(secret)),
      launcher_(::getpid()) {
  for (std::string& argument : command_) arguments_.push_back(argument.data());
  arguments_.push_back(nullptr);
}

Starter::~Starter() {
  // Without Finish() something went wrong, and the keeper cleans up.
  life_.write.Close();
  if (keeper_ > 0) (void)::waitpid(keeper_, nullptr, 0);
  if (sessions_ != nullptr) ::munmap(sessions_, sizeof(*sessions_) * static_cast<size_t>(ranks_));
}

Status Starter::Prepare() {
  if (::getrlimit(RLIMIT_NOFILE, &files_before_) == 0) {
    rlimit most = files_before_;
    most.rlim_cur = most.rlim_max;
    (void)::setrlimit(RLIMIT_NOFILE, &most);
  }
  const size_t count = static_cast<size_t>(ranks_);
  void* memory = ::mmap(nullptr, sizeof(*sessions_) * count, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return IoError("no memory: " + ErrnoText(errno));
  sessions_ = static_cast<std::atomic<pid_t>*>(memory);
  for (size_t i = 0; i < count; ++i) new (&sessions_[i]) std::atomic<pid_t>(0);

  Result<Pipe> life = MakePipe();
  if (!life.ok()) return life.status();
  life_ = std::move(life).value();
  keeper_ = ::fork();
  if (keeper_ == 0) Keep();
  if (keeper_ < 0) return IoError("cannot start a process: " + ErrnoText(errno));
  life_.read.Close();

  Result<Pipe> failures = MakePipe();
  if (!failures.ok()) return failures.status();
  failures_ = std::move(failures).value();
  (void)::fcntl(failures_.read.get(), F_SETFL, O_NONBLOCK);
  return {};
}

void Starter::Keep() {
  sigset_t all;
  ::sigfillset(&all);
  (void)::sigprocmask(SIG_SETMASK, &all, nullptr);
  (void)::setsid();
  (void)::prctl(PR_SET_NAME, "diapason-keeper");
  life_.write.Close();
  const Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
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
    if (SignalSessions(sessions, SIGKILL) == 0) break;
    const timespec pause{0, 20'000'000};
    (void)::nanosleep(&pause, nullptr);
  }
  ::_exit(0);
}

Result<pid_t> Starter::Start(const RankStart& start) {
  std::vector<char*> environment;
  for (const std::string& variable : start.environment) {
    environment.push_back(const_cast<char*>(variable.c_str()));
  }
  environment.push_back(nullptr);
  const pid_t pid = ::fork();
  if (pid < 0) {
    return IoError(Format("cannot start rank %d: %s", start.rank, ErrnoText(errno).c_str()));
  }
  if (pid == 0) Become(start, environment.data());
  return pid;
}

void Starter::Become(const RankStart& start, char* const* environment) {
  (void)::setsid();
  // By the rank itself, so that there is no moment in which it runs and the keeper does not know.
  sessions_[start.rank].store(::getpid());
  (void)::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // The launcher may have ended before the kernel was told.
  if (::getppid() != launcher_) ::_exit(1);
  const int from[] = {start.in, start.out, start.err};
  for (int fd = 0; fd <= 2; ++fd) {
    if (from[fd] >= 0) (void)::dup2(from[fd], fd);
  }
  (void)::setrlimit(RLIMIT_NOFILE, &files_before_);
  signals_->Restore();
  // execvp looks for the program in the PATH of the rank.
  environ = const_cast<char**>(environment);
  (void)::execvp(arguments_[0], arguments_.data());
  const StartFailure failure{start.rank, errno};
  // One write of a few bytes into a pipe is whole or nothing.
  (void)!::write(failures_.write.get(), &failure, sizeof(failure));
  ::_exit(StatusOfStartError(failure.error));
}

bool Starter::TakeFailure(StartFailure* failure) {
  return ::read(failures_.read.get(), failure, sizeof(*failure)) ==
         static_cast<ssize_t>(sizeof(*failure));
}

void Starter::Finish() {
  if (keeper_ <= 0) return;
  (void)::kill(keeper_, SIGKILL);
  while (::waitpid(keeper_, nullptr, 0) < 0 && errno == EINTR) {
  }
  keeper_ = -1;
}

}  // namespace diapason::launch
