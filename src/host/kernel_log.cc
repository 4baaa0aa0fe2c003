#include "host/kernel_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "base/descriptor.h"
#include "base/printable.h"
#include "base/text.h"

namespace diapason::host {
namespace {

constexpr size_t kMostEvents = 1000;
constexpr size_t kMostRecords = 100000;
constexpr off_t kMostBytes = 1 << 20;  // of a file, from its end
constexpr size_t kLongestLine = 200;

// The kernel's buffer: every read returns a record, and EAGAIN is the end.
bool ReadBuffer(std::string* text) {
  const Descriptor buffer(::open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!buffer.open()) return false;
  char record[8192];
  bool any = false;
  for (size_t i = 0; i < kMostRecords; ++i) {
    const ssize_t size = ::read(buffer.get(), record, sizeof(record));
    if (size < 0 && (errno == EPIPE || errno == EINTR)) continue;  // overwritten meanwhile
    if (size <= 0) return any || (size < 0 && errno == EAGAIN);
    any = true;
    text->append(record, static_cast<size_t>(size));
    if (!text->ends_with('\n')) *text += '\n';
  }
  return true;
}

bool ReadEnd(const std::string& path, std::string* text) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  struct stat status = {};
  if (!file.open() || fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return false;
  off_t at = std::max<off_t>(0, status.st_size - kMostBytes);
  char piece[65536];
  while (text->size() < static_cast<size_t>(kMostBytes)) {
    const ssize_t size = ::pread(file.get(), piece, sizeof(piece), at);
    if (size <= 0) break;
    text->append(piece, static_cast<size_t>(size));
    at += size;
  }
  return true;
}

// "NVRM: Xid (PCI:0000:41:00): 79, pid=1234, GPU has fallen off the bus."
bool IsXid(std::string_view line, KernelEvent* event) {
  const size_t begin = line.find("NVRM: Xid (PCI:");
  if (begin == std::string_view::npos) return false;
  const size_t device = begin + 15;
  const size_t close = line.find("): ", device);
  if (close == std::string_view::npos) return false;
  event->device = std::string(line.substr(device, close - device));
  event->xid = std::atoi(std::string(line.substr(close + 3, 8)).c_str());
  return event->xid > 0;
}

// Messages of the AMD driver that mean a fault.
bool IsAmdFault(std::string_view line, KernelEvent* event) {
  const size_t begin = line.find("amdgpu 0000:");
  const size_t driver = line.find("amdgpu");
  if (driver == std::string_view::npos) return false;
  const std::string lower = ToLower(line.substr(0, 1024));
  bool fault = false;
  for (const char* words :
       {"gpu reset begin", "page fault", "protection_fault", "uncorrectable", " timeout, signaled",
        "ring hang", "device lost from bus", "gpu recovery failed", "fatal error"}) {
    fault = fault || lower.find(words) != std::string::npos;
  }
  if (!fault) return false;
  if (begin != std::string_view::npos) event->device = std::string(line.substr(begin + 7, 10));
  return true;
}

}  // namespace

std::vector<KernelEvent> FindKernelEvents(const std::string& text) {
  std::vector<KernelEvent> events;
  for (const std::string_view line : Split(text, '\n')) {
    KernelEvent event;
    if (!IsXid(line, &event) && !IsAmdFault(line, &event)) continue;
    const size_t begin = line.find(event.xid > 0 ? "NVRM" : "amdgpu");
    event.line = Printable(std::string(Trim(line.substr(begin, kLongestLine))));
    if (events.size() == kMostEvents) events.erase(events.begin());
    events.push_back(std::move(event));
  }
  return events;
}

KernelLog ReadKernelLog(const RootFs& tree) {
  KernelLog log;
  std::string text;
  if (tree.live() && ReadBuffer(&text)) {
    log.source = "/dev/kmsg";
  } else {
    for (const char* path : {"/var/log/kern.log", "/var/log/messages", "/var/log/syslog"}) {
      text.clear();
      if (!ReadEnd(tree.Place(path), &text)) continue;
      log.source = path;
      break;
    }
  }
  log.events = FindKernelEvents(text);
  return log;
}

}  // namespace diapason::host
