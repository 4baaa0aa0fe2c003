#include "host/process.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/clock.h"
#include "base/text.h"
#include "process/sessions.h"

namespace diapason::host {
namespace {

constexpr size_t kMostMaps = size_t{64} << 20;
constexpr size_t kMostEnvironment = size_t{4} << 20;

std::string Folder(pid_t pid) { return Format("/proc/{}", static_cast<int>(pid)); }

std::vector<std::string_view> Words(std::string_view text) {
  std::vector<std::string_view> words;
  for (const std::string_view word : Split(text, ' ')) {
    if (!Trim(word).empty()) words.push_back(Trim(word));
  }
  return words;
}

std::optional<process::ProcessStat> ReadStat(const RootFs& tree, const std::string& folder) {
  return process::ParseStat(tree.Read(folder + "/stat").value_or(""));
}

// The lines "Key:  value" of a status file.
std::map<std::string_view, std::string_view> ReadStatus(std::string_view text) {
  std::map<std::string_view, std::string_view> values;
  for (const std::string_view line : Split(text, '\n')) {
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    values.emplace(line.substr(0, colon), Trim(line.substr(colon + 1)));
  }
  return values;
}

uint64_t NumberOf(const std::map<std::string_view, std::string_view>& values,
                  std::string_view key) {
  const auto found = values.find(key);
  uint64_t number = 0;
  if (found == values.end() || !ParseUnsigned(found->second, &number)) return 0;
  return number;
}

// "123 kB" in bytes.
uint64_t BytesOf(const std::map<std::string_view, std::string_view>& values, std::string_view key) {
  const auto found = values.find(key);
  if (found == values.end()) return 0;
  const std::vector<std::string_view> words = Words(found->second);
  uint64_t number = 0;
  if (words.empty() || !ParseUnsigned(words[0], &number) || number > UINT64_MAX / 1024) return 0;
  return number * 1024;
}

double Seconds(uint64_t ticks) {
  static const auto per_second = static_cast<double>(std::max(1L, sysconf(_SC_CLK_TCK)));
  return static_cast<double>(ticks) / per_second;
}

// System calls in which threads of such jobs are found, by this architecture's numbers.
std::string SystemCall(std::string_view number) {
  static const std::map<int64_t, const char*> names = {
      {SYS_futex, "futex"},
      {SYS_read, "read"},
      {SYS_write, "write"},
      {SYS_ioctl, "ioctl"},
      {SYS_nanosleep, "nanosleep"},
      {SYS_clock_nanosleep, "clock_nanosleep"},
      {SYS_recvfrom, "recvfrom"},
      {SYS_recvmsg, "recvmsg"},
      {SYS_accept, "accept"},
      {SYS_ppoll, "ppoll"},
      {SYS_pselect6, "pselect6"},
      {SYS_wait4, "wait4"},
      {SYS_epoll_pwait, "epoll_pwait"},
#ifdef SYS_poll
      {SYS_poll, "poll"},
      {SYS_select, "select"},
      {SYS_epoll_wait, "epoll_wait"},
#endif
  };
  int64_t value = 0;
  if (!ParseSigned(number, &value) || value < 0) return "";
  const auto found = names.find(value);
  return found == names.end() ? Format("system call {}", value) : found->second;
}

std::string WaitsIn(const RootFs& tree, const std::string& folder, char state) {
  if (state == 'R') return "";
  const std::optional<std::string> place = tree.Read(folder + "/wchan", 256);
  if (place && !place->empty() && *place != "0") return *place;
  // Needs more privileges, but exists in more kernels.
  const std::optional<std::string> call = tree.Read(folder + "/syscall", 256);
  if (!call || call->empty() || *call == "running") return "";
  return SystemCall(Split(*call, ' ')[0]);
}

// False: the thread has ended meanwhile.
bool SampleThread(const RootFs& tree, const std::string& folder, ThreadSample* thread) {
  const std::optional<process::ProcessStat> stat = ReadStat(tree, folder);
  if (!stat) return false;
  thread->name = stat->name;
  thread->role = RoleOfThread(stat->name);
  thread->state = stat->state;
  thread->user_s = Seconds(stat->Number(14));
  thread->system_s = Seconds(stat->Number(15));
  thread->start_ticks = stat->Number(22);
  thread->last_cpu = stat->numbers.size() > 35 ? static_cast<int>(stat->Number(39)) : -1;
  if (const std::optional<std::string> sched = tree.Read(folder + "/schedstat", 256); sched) {
    const std::vector<std::string_view> words = Words(*sched);
    uint64_t waited = 0;
    if (words.size() >= 2 && ParseUnsigned(words[1], &waited)) {
      thread->has_wait = true;
      thread->wait_s = static_cast<double>(waited) * 1e-9;
    }
  }
  if (const std::optional<std::string> text = tree.Read(folder + "/status"); text) {
    const auto values = ReadStatus(*text);
    thread->voluntary = NumberOf(values, "voluntary_ctxt_switches");
    thread->involuntary = NumberOf(values, "nonvoluntary_ctxt_switches");
    if (const auto cpus = values.find("Cpus_allowed_list"); cpus != values.end()) {
      thread->allowed_cpus = std::string(cpus->second);
    }
  }
  thread->waits_in = WaitsIn(tree, folder, thread->state);
  return true;
}

Status Gone(pid_t pid) { return NotFound(Format("there is no process {}", static_cast<int>(pid))); }

// Files of /proc that need the permission to trace the process.
Result<std::string> ReadPrivate(const RootFs& tree, pid_t pid, const char* file, size_t limit) {
  if (!tree.IsFolder(Folder(pid))) return Gone(pid);
  std::optional<std::string> text = tree.Read(Folder(pid) + "/" + file, limit);
  if (text) return *std::move(text);
  return Unavailable(
      Format("{}/{} cannot be read: process {} belongs to another user, or may not "
             "be inspected; try as its user or as root",
             tree.Place(Folder(pid)), file, static_cast<int>(pid)));
}

// "7f00-7f10 r-xp 0 08:01 123    /usr/lib/x.so (deleted)": the file; "" if there is none.
std::string FileOfMapping(std::string_view line) {
  size_t at = 0;
  for (int field = 0; field < 5; ++field) {
    at = line.find(' ', at);
    if (at == std::string_view::npos) return "";
    while (at < line.size() && line[at] == ' ') ++at;
  }
  return std::string(line.substr(at));
}

bool IsSharedLibrary(const std::string& path) {
  const size_t slash = path.rfind('/');
  const std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
  return name.ends_with(".so") || name.find(".so.") != std::string::npos;
}

bool StartsMapping(std::string_view line) {
  const size_t dash = line.find('-');
  const size_t blank = line.find(' ');
  return dash != std::string_view::npos && blank != std::string_view::npos && dash < blank &&
         line.substr(0, blank).find(':') == std::string_view::npos;
}

}  // namespace

ThreadRole RoleOfThread(const std::string& name) {
  // Names are truncated to 15 bytes: "NCCL UDS Servic", "NCCL GIN Progre", "NCCL RMA Proxy ".
  static const std::pair<const char*, ThreadRole> kNames[] = {
      {"NCCL Progress", ThreadRole::kProgress},
      {"NCCL GIN Prog", ThreadRole::kProgress},
      {"NCCL RMA Proxy", ThreadRole::kProgress},
      {"NCCL Service", ThreadRole::kService},
      {"NCCL UDS", ThreadRole::kUds},
      {"NCCL Ib", ThreadRole::kIbAsync},
      {"NCCL Sock", ThreadRole::kSocket},
      {"NCCL Bootstrap", ThreadRole::kBootstrap},
      {"NCCL RAS", ThreadRole::kRas},
      {"diapason-jrnl", ThreadRole::kDiapason},
  };
  for (const auto& [start, role] : kNames) {
    if (name.starts_with(start)) return role;
  }
  return ThreadRole::kOther;
}

std::string_view ThreadRoleName(ThreadRole role) {
  switch (role) {
    case ThreadRole::kProgress:
      return "progress";
    case ThreadRole::kService:
      return "service";
    case ThreadRole::kUds:
      return "uds";
    case ThreadRole::kIbAsync:
      return "ib-async";
    case ThreadRole::kSocket:
      return "socket";
    case ThreadRole::kBootstrap:
      return "bootstrap";
    case ThreadRole::kRas:
      return "ras";
    case ThreadRole::kDiapason:
      return "diapason";
    case ThreadRole::kOther:
      break;
  }
  return "other";
}

bool WaitsInFutex(const ThreadSample& thread) {
  return thread.waits_in.find("futex") != std::string::npos;
}

Result<ProcessSample> SampleProcess(const RootFs& tree, pid_t pid) {
  const std::string folder = Folder(pid);
  const std::optional<std::string> stat_text = tree.Read(folder + "/stat");
  if (!stat_text) {
    if (!tree.IsFolder(folder)) return Gone(pid);
    return Unavailable(Format("{}/stat cannot be read", tree.Place(folder)));
  }
  const std::optional<process::ProcessStat> stat = process::ParseStat(*stat_text);
  if (!stat) return Unavailable(Format("{}/stat is not understood", tree.Place(folder)));
  ProcessSample sample;
  sample.pid = pid;
  sample.time_s = SteadySeconds();
  sample.name = stat->name;
  sample.state = stat->state;
  sample.parent = static_cast<pid_t>(stat->Number(4));
  sample.start_ticks = stat->Number(22);
  sample.major_faults = stat->Number(12);
  sample.virtual_size = stat->Number(23);
  if (const std::optional<std::string> text = tree.Read(folder + "/status"); text) {
    const auto values = ReadStatus(*text);
    sample.resident = BytesOf(values, "VmRSS");
    sample.anonymous = BytesOf(values, "RssAnon");
    sample.shared_memory = BytesOf(values, "RssShmem");
    sample.locked = BytesOf(values, "VmLck");
    sample.pinned = BytesOf(values, "VmPin");
    sample.swapped = BytesOf(values, "VmSwap");
  }
  sample.open_files = static_cast<int>(tree.List(folder + "/fd").size());
  for (const std::string& name : tree.List(folder + "/task")) {
    uint64_t tid = 0;
    if (!ParseUnsigned(name, &tid) || tid > INT32_MAX) continue;
    ThreadSample thread;
    thread.tid = static_cast<pid_t>(tid);
    if (SampleThread(tree, folder + "/task/" + name, &thread)) {
      sample.threads.push_back(std::move(thread));
    }
  }
  return sample;
}

bool PeekThread(const RootFs& tree, pid_t pid, ThreadSample* thread) {
  const std::string folder = Folder(pid) + Format("/task/{}", static_cast<int>(thread->tid));
  const std::optional<process::ProcessStat> stat = ReadStat(tree, folder);
  if (!stat) return false;
  thread->state = stat->state;
  thread->waits_in = WaitsIn(tree, folder, thread->state);
  return true;
}

Result<std::vector<MappedFile>> MappedLibraries(const RootFs& tree, pid_t pid) {
  Result<std::string> maps = ReadPrivate(tree, pid, "smaps", kMostMaps);
  if (!maps.ok()) maps = ReadPrivate(tree, pid, "maps", kMostMaps);
  if (!maps.ok()) return maps.status();
  std::vector<MappedFile> files;
  std::map<std::string, size_t> known;
  MappedFile* current = nullptr;
  constexpr std::string_view kDeleted = " (deleted)";
  for (const std::string_view line : Split(maps.value(), '\n')) {
    if (StartsMapping(line)) {
      std::string path = FileOfMapping(line);
      const bool deleted = path.ends_with(kDeleted);
      if (deleted) path.resize(path.size() - kDeleted.size());
      current = nullptr;
      if (!IsSharedLibrary(path)) continue;
      const auto [at, fresh] = known.emplace(path, files.size());
      if (fresh) files.push_back({path, deleted, 0});
      current = &files[at->second];
      current->deleted |= deleted;
    } else if (current != nullptr && line.starts_with("Rss:")) {
      current->resident += BytesOf(ReadStatus(line), "Rss");
    }
  }
  return files;
}

Result<MapEnvironment> EnvironmentOf(const RootFs& tree, pid_t pid) {
  ASSIGN_OR_RETURN(const std::string text, ReadPrivate(tree, pid, "environ", kMostEnvironment));
  std::map<std::string, std::string> variables;
  for (const std::string_view entry : Split(text, '\0')) {
    const size_t equals = entry.find('=');
    if (equals == std::string_view::npos || equals == 0) continue;
    // For a duplicate name getenv returns the first.
    variables.emplace(entry.substr(0, equals), entry.substr(equals + 1));
  }
  return MapEnvironment(std::move(variables));
}

std::vector<pid_t> WithDescendants(const RootFs& tree, const std::vector<pid_t>& roots,
                                   size_t most) {
  std::multimap<pid_t, pid_t> children;
  for (const std::string& name : tree.List("/proc")) {
    uint64_t pid = 0;
    if (!ParseUnsigned(name, &pid) || pid > INT32_MAX) continue;
    const std::optional<process::ProcessStat> stat = ReadStat(tree, "/proc/" + name);
    if (stat) children.emplace(static_cast<pid_t>(stat->Number(4)), static_cast<pid_t>(pid));
  }
  std::vector<pid_t> all;
  std::set<pid_t> seen;
  for (const pid_t root : roots) {
    if (seen.insert(root).second) all.push_back(root);
  }
  for (size_t i = 0; i < all.size() && all.size() < most; ++i) {
    const auto [first, last] = children.equal_range(all[i]);
    for (auto child = first; child != last && all.size() < most; ++child) {
      if (seen.insert(child->second).second) all.push_back(child->second);
    }
  }
  return all;
}

}  // namespace diapason::host
