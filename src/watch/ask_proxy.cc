#include "watch/ask_proxy.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>

#include "base/clock.h"
#include "base/descriptor.h"
#include "base/file.h"
#include "base/text.h"
#include "host/process.h"
#include "watch/proxy_dump.h"

namespace diapason::watch {
namespace {

constexpr size_t kMostText = size_t{16} << 20;
constexpr size_t kMostFills = 2000;
constexpr size_t kMostFiles = 4;
constexpr double kPollSeconds = 0.02;
constexpr char kVariable[] = "NCCL_PROXY_DUMP_SIGNAL";

std::string Folder(pid_t pid) { return Format("/proc/{}", static_cast<int>(pid)); }

// Of a descriptor: 0 reading, 1 writing, 2 both; -1: unknown.
int AccessMode(const RootFs& tree, const std::string& folder, const std::string& fd) {
  const std::optional<std::string> text = tree.Read(folder + "/fdinfo/" + fd, 4096);
  if (!text) return -1;
  for (const std::string_view line : Split(*text, '\n')) {
    if (!line.starts_with("flags:")) continue;
    const std::string_view flags = Trim(line.substr(6));
    return flags.empty() ? -1 : (flags.back() - '0') & 3;
  }
  return -1;
}

std::vector<OutputHolder> ReadersOf(const RootFs& tree, const std::string& pipe, pid_t except) {
  std::vector<OutputHolder> holders;
  for (const std::string& name : tree.List("/proc")) {
    uint64_t pid = 0;
    if (!ParseUnsigned(name, &pid) || pid == static_cast<uint64_t>(except)) continue;
    const std::string folder = "/proc/" + name;
    bool reads = false;
    OutputHolder holder;
    for (const std::string& fd : tree.List(folder + "/fd")) {
      const std::string target = tree.Link(folder + "/fd/" + fd).value_or("");
      if (target == pipe) {
        reads |= AccessMode(tree, folder, fd) == 0;
      } else if (target.starts_with("/") && !target.starts_with("/dev/") &&
                 AccessMode(tree, folder, fd) > 0 && holder.files.size() < kMostFiles) {
        holder.files.push_back(target);
      }
    }
    if (!reads) continue;
    holder.pid = static_cast<pid_t>(pid);
    holder.name = tree.Read(folder + "/comm", 256).value_or("?");
    holders.push_back(std::move(holder));
  }
  return holders;
}

// As NCCL reads its variables: any base, and nothing after the number.
bool ParseSignal(const std::string& text, int* number) {
  char* end = nullptr;
  errno = 0;
  const long long value = std::strtoll(text.c_str(), &end, 0);
  if (errno != 0 || end == text.c_str() || *end != '\0' || value < 1 || value > 64) return false;
  *number = static_cast<int>(value);
  return true;
}

bool Caught(const RootFs& tree, pid_t pid, int signal) {
  const std::optional<std::string> status = tree.Read(Folder(pid) + "/status");
  if (!status) return false;
  for (const std::string_view line : Split(*status, '\n')) {
    if (!line.starts_with("SigCgt:")) continue;
    const uint64_t mask = std::strtoull(std::string(Trim(line.substr(7))).c_str(), nullptr, 16);
    return (mask >> (signal - 1) & 1) != 0;
  }
  return false;
}

// Text appended to a file since a position.
class Tail {
 public:
  Status Open(const std::string& path) {
    fd_ = Descriptor(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    struct stat about {};
    if (!fd_.open()) return IoError("cannot read '" + path + "': " + ErrnoText(errno));
    if (fstat(fd_.get(), &about) != 0 || !S_ISREG(about.st_mode)) {
      return Invalid("'" + path + "' is not a regular file");
    }
    at_ = about.st_size;
    return {};
  }
  void ReadOn(std::string* text) {
    char block[65536];
    while (text->size() < kMostText) {
      const ssize_t got = pread(fd_.get(), block, sizeof block, at_);
      if (got <= 0) return;
      at_ += got;
      text->append(block, static_cast<size_t>(got));
    }
  }

 private:
  Descriptor fd_;
  off_t at_ = 0;
};

Status Send(const RootFs& tree, const DumpTarget& target) {
  ASSIGN_OR_RETURN(const host::ProcessSample now, host::SampleProcess(tree, target.pid));
  if (now.start_ticks != target.start_ticks) {
    return NotFound(Format("process {} has ended, and another one has its number",
                           static_cast<int>(target.pid)));
  }
  if (!Caught(tree, target.pid, target.signal)) {
    return Unavailable("the handler of the signal is gone; the signal was not sent");
  }
  const auto sent = target.thread != 0
                        ? syscall(SYS_tgkill, target.pid, target.thread, target.signal)
                        : kill(target.pid, target.signal);
  if (sent != 0) {
    return IoError(Format("cannot send signal {} to process {}: {}", target.signal,
                          static_cast<int>(target.pid), ErrnoText(errno)));
  }
  return {};
}

bool HasWholeDump(const std::string& text) {
  const std::vector<ProxyDump> dumps = ParseProxyDumps(text);
  return std::any_of(dumps.begin(), dumps.end(),
                     [](const ProxyDump& dump) { return dump.complete; });
}

}  // namespace

void Pause(double seconds) {
  const double until = SteadySeconds() + seconds;
  for (double left = seconds; left > 0; left = until - SteadySeconds()) {
    const double whole = std::floor(left);
    const timespec time{static_cast<time_t>(whole), static_cast<long>((left - whole) * 1e9)};
    nanosleep(&time, nullptr);
  }
}

OutputPlace OutputOf(const RootFs& tree, pid_t pid) {
  OutputPlace place;
  const std::optional<std::string> link = tree.Link(Folder(pid) + "/fd/1");
  if (!link) {
    place.kind = OutputPlace::Kind::kNowhere;
    place.name = "closed, or not to be seen";
    return place;
  }
  place.name = *link;
  if (link->starts_with("pipe:")) {
    place.kind = OutputPlace::Kind::kPipe;
    place.readers = ReadersOf(tree, *link, pid);
  } else if (*link == "/dev/null") {
    place.kind = OutputPlace::Kind::kNowhere;
  } else if (link->starts_with("/dev/pts/") || link->starts_with("/dev/tty") ||
             *link == "/dev/console") {
    place.kind = OutputPlace::Kind::kTerminal;
  } else if (link->starts_with("/") && !link->starts_with("/dev/")) {
    place.kind = OutputPlace::Kind::kFile;
  }
  return place;
}

Result<DumpTarget> FindDumpTarget(const RootFs& tree, pid_t pid) {
  ASSIGN_OR_RETURN(const host::ProcessSample sample, host::SampleProcess(tree, pid));
  ASSIGN_OR_RETURN(const MapEnvironment environment, host::EnvironmentOf(tree, pid));
  const int id = static_cast<int>(pid);
  const std::optional<std::string> value = environment.Get(kVariable);
  if (!value) {
    return Unavailable(Format(
        "process {} was not started with {}, so that NCCL does not listen; start the job with "
        "{}=10 (SIGUSR1 on Linux): a running process cannot be told",
        id, kVariable, kVariable));
  }
  DumpTarget target;
  target.pid = pid;
  target.start_ticks = sample.start_ticks;
  if (!ParseSignal(*value, &target.signal)) {
    return Invalid(
        Format("process {} has {}={}, which is no number of a signal, and NCCL reads "
               "numbers only; use 10 for SIGUSR1, 12 for SIGUSR2",
               id, kVariable, value->substr(0, 40)));
  }
  if (!Caught(tree, pid, target.signal)) {
    return Unavailable(Format(
        "process {} has no handler for signal {}, and without one the signal would end it: not "
        "sent. NCCL installs the handler when its first progress thread starts, which is when a "
        "communicator connects over a network",
        id, target.signal));
  }
  const host::ThreadSample* last = nullptr;
  for (const host::ThreadSample& thread : sample.threads) {
    // Other threads with that role have lists of their own, which are not printed.
    if (!thread.name.starts_with("NCCL Progress")) continue;
    if (last == nullptr || thread.start_ticks >= last->start_ticks) last = &thread;
  }
  if (last != nullptr) {
    target.thread = last->tid;
    target.thread_name = last->name;
  } else if (environment.Get("NCCL_SET_THREAD_NAME").value_or("") == "1") {
    return Unavailable(
        Format("process {} names its threads and has no progress thread: the "
               "handler of signal {} is the program's own, and was not called",
               id, target.signal));
  }
  target.output = OutputOf(tree, pid);
  return target;
}

Result<DumpAnswer> AskForDump(const RootFs& tree, const DumpTarget& target, const std::string& file,
                              const DumpWait& wait) {
  DumpAnswer answer;
  Tail tail;
  if (file.empty()) {
    RETURN_IF_ERROR(Send(tree, target));
    answer.asked = 1;
    return answer;
  }
  RETURN_IF_ERROR(tail.Open(file));
  const double deadline = SteadySeconds() + wait.timeout_s;
  size_t parsed = 0;
  do {
    if (answer.asked == 0 || (wait.fill && answer.asked < kMostFills)) {
      const Status sent = Send(tree, target);
      if (!sent.ok()) {
        if (answer.asked == 0) return sent;
        answer.ended = sent.code() == ErrorCode::kNotFound;
        break;
      }
      ++answer.asked;
    }
    Pause(kPollSeconds);
    tail.ReadOn(&answer.text);
    if (answer.text.size() > parsed) {
      parsed = answer.text.size();
      answer.complete = HasWholeDump(answer.text);
    }
  } while (!answer.complete && SteadySeconds() < deadline);
  if (!answer.complete) {
    const Result<host::ProcessSample> now = host::SampleProcess(tree, target.pid);
    answer.ended |=
        !now.ok() || now.value().start_ticks != target.start_ticks || now.value().state == 'Z';
  }
  return answer;
}

}  // namespace diapason::watch
