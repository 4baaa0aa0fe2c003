#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/root_fs.h"
#include "base/temporary_file.h"
#include "base/text.h"

// Fake processes, for the tests of this component and of others that read processes.
namespace diapason::host {

// A folder that looks like a machine's root; the destructor removes it.
class FakeRoot {
 public:
  void Write(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path, std::ios::binary) << text;
  }
  void Link(const std::string& path, const std::string& target) const {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::filesystem::remove(root_ + path);
    std::filesystem::create_symlink(target, root_ + path);
  }
  void Remove(const std::string& path) const { std::filesystem::remove_all(root_ + path); }
  RootFs tree() const { return RootFs(root_); }
  const std::string& root() const { return root_; }

 private:
  const TemporaryFolder folder_;
  const std::string& root_ = folder_.path();
};

// A line of /proc/PID/stat.
inline std::string StatLine(int pid, const std::string& name, char state, int parent,
                            uint64_t user_ticks, uint64_t system_ticks, uint64_t start) {
  const auto number = [](uint64_t value) { return std::to_string(value); };
  return std::to_string(pid) + " (" + name + ") " + state + " " + std::to_string(parent) +
         " 1 1 0 -1 4194304 100 0 7 0 " + number(user_ticks) + " " + number(system_ticks) +
         " 0 0 20 0 2 0 " + number(start) +
         " 1048576 256 18446744073709551615 0 0 0 0 0 0 0 0 0 0 0 0 17 3 0 0 0 0 0\n";
}

struct FakeThread {
  int tid = 0;
  std::string name = "worker";
  uint64_t user_ticks = 0;
  uint64_t system_ticks = 0;
  uint64_t voluntary = 0;
  uint64_t involuntary = 0;
  uint64_t wait_ns = 0;
  std::string wchan = "futex_wait_queue";
  uint64_t start = 500;
  char state = 'S';
};

inline void AddThread(const FakeRoot& fake, int pid, const FakeThread& thread) {
  const std::string folder = Format("/proc/{}/task/{}", pid, thread.tid);
  fake.Write(folder + "/stat", StatLine(thread.tid, thread.name, thread.state, 1, thread.user_ticks,
                                        thread.system_ticks, thread.start));
  fake.Write(folder + "/schedstat", Format("1000 {} 5\n", thread.wait_ns));
  fake.Write(folder + "/status",
             Format("Name:\tx\nCpus_allowed_list:\t0-3\nvoluntary_ctxt_switches:\t{}\n"
                    "nonvoluntary_ctxt_switches:\t{}\n",
                    thread.voluntary, thread.involuntary));
  fake.Write(folder + "/wchan", thread.wchan);
}

// A process without threads; it has a handler for signal 10.
inline void AddProcess(const FakeRoot& fake, int pid, const std::string& name, int parent = 1,
                       uint64_t resident_kb = 2048, uint64_t start = 500) {
  const std::string folder = Format("/proc/{}", pid);
  fake.Write(folder + "/stat", StatLine(pid, name, 'S', parent, 0, 0, start));
  fake.Write(folder + "/status",
             Format("Name:\t{}\nVmLck:\t       4 kB\nVmPin:\t       8 kB\nVmRSS:\t    {} kB\n"
                    "RssAnon:\t     512 kB\nRssShmem:\t     128 kB\nVmSwap:\t      16 kB\n"
                    "SigCgt:\t0000000000000200\n",
                    name, resident_kb));
}

}  // namespace diapason::host
