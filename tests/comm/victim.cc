// victim: does what it is told, step by step, as one rank of a job that something happens to. Every
// step leaves one line of JSON on standard output: what it was, whether it went well, how long it
// took and what the error says. fault.py reads them.
//
//   victim [--backend NAME] [--limit MILLISECONDS] STEP...
//   victim --probe NAME            (77 where this machine does not have the backend)
//   victim --threads [--backend NAME] [--limit MILLISECONDS] STEP... / STEP... / STEP...
//
// With --threads the ranks are threads of this process, each with its own steps. Steps:
//   create  destroy  rank=R  size=N  port=P  backend=NAME      (those before the next create)
//   all_reduce=COUNT  all_gather=COUNT  reduce_scatter=COUNT  all_to_all=COUNT  barrier
//   broadcast=COUNT:ROOT  reduce=COUNT:ROOT  send=COUNT:TO  recv=COUNT:FROM
//   start=COUNT (an all_reduce)  wait  loop=TIMES:COUNT (all_reduces, until one fails)
//   split=COLOR (the new group is used from here on)
//   sleep=MILLISECONDS  file=PATH (waits until it exists)  last (waits until other threads end)
//   kill  kill_after=MILLISECONDS  stop  exit=STATUS
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "base/text.h"
#include "diapason/comm.h"

namespace diapason {
namespace {

// Nothing that is tested here takes this long.
constexpr unsigned kAlarmSeconds = 1200;

std::string Quote(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      quoted += Format("\\u{:04x}", c);
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

const char* CodeName(const Status& status) {
  if (status.ok()) return "";
  constexpr const char* kNames[] = {"invalid", "not_found", "unavailable", "io",
                                    "timeout", "peer_lost", "internal"};
  return kNames[static_cast<size_t>(status.code())];
}

// Threads that have not done all their steps.
std::atomic<int> running_threads = 1;

class Victim {
 public:
  Victim(GroupOptions options, std::vector<std::string> steps)
      : options_(std::move(options)), steps_(std::move(steps)) {}

  void Run() {
    for (const std::string& step : steps_) {
      const auto start = std::chrono::steady_clock::now();
      const Status status = Do(step);
      const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
      const std::string line =
          Format(
              "{{\"rank\": {}, \"step\": {}, \"ok\": {}, \"seconds\": {:.3f}, \"code\": \"{}\", ",
              Rank(), Quote(step), status.ok() ? "true" : "false", seconds.count(),
              CodeName(status)) +
          "\"message\": " + Quote(status.message()) + "}\n";
      // In one piece, and at once: the next step may be the last.
      if (write(STDOUT_FILENO, line.data(), line.size()) < 0) std::abort();
    }
    --running_threads;
  }

 private:
  int Rank() const { return groups_.empty() ? options_.rank : groups_.back()->rank(); }

  Status Do(const std::string& step) {
    const size_t equals = step.find('=');
    const std::string name = step.substr(0, equals);
    const std::string value = equals == std::string::npos ? "" : step.substr(equals + 1);
    const long number = std::atol(value.c_str());
    const size_t colon = value.find(':');
    const long second = colon == std::string::npos ? 0 : std::atol(value.c_str() + colon + 1);

    if (name == "create") return Create();
    if (name == "rank") return options_.rank = static_cast<int>(number), Status();
    if (name == "size") return options_.size = static_cast<int>(number), Status();
    if (name == "port") return options_.master_port = static_cast<int>(number), Status();
    if (name == "backend") return options_.backend = value, Status();
    if (name == "sleep") {
      std::this_thread::sleep_for(std::chrono::milliseconds(number));
      return Status();
    }
    if (name == "file") {
      while (access(value.c_str(), F_OK) != 0) Pause();
      return Status();
    }
    if (name == "last") {
      while (running_threads > 1) Pause();
      return Status();
    }
    if (name == "kill") raise(SIGKILL);
    if (name == "kill_after") {
      std::thread([number] {
        std::this_thread::sleep_for(std::chrono::milliseconds(number));
        kill(getpid(), SIGKILL);
      }).detach();
      return Status();
    }
    if (name == "stop") return raise(SIGSTOP), Status();
    if (name == "exit") _exit(static_cast<int>(number));
    if (groups_.empty()) return NotFound("no group for step '" + step + "'");
    Group& group = *groups_.back();
    if (name == "destroy") {
      work_.reset();
      groups_.clear();
      return Status();
    }
    if (name == "split") return Split(static_cast<int>(number));
    if (name == "wait") return work_ ? work_->Wait() : NotFound("nothing was started");
    if (name == "loop") {
      for (long i = 0; i < number; ++i) {
        const Status status = Collective(group, "all_reduce", static_cast<size_t>(second), 0);
        if (!status.ok()) return status;
      }
      return Status();
    }
    return Collective(group, name, static_cast<size_t>(number), static_cast<int>(second));
  }

  static void Pause() { std::this_thread::sleep_for(std::chrono::milliseconds(5)); }

  Status Create() {
    auto created = Group::Create(options_);
    if (!created.ok()) return created.status();
    groups_.push_back(std::move(created).value());
    return Status();
  }

  Status Split(int color) {
    auto split = groups_.back()->Split(color, 0);
    if (!split.ok()) return split.status();
    if (split.value() == nullptr) return NotFound("not in any group");
    groups_.push_back(std::move(split).value());
    return Status();
  }

  // Ones everywhere, so that a result that is wrong and not refused shows.
  Status Collective(Group& group, const std::string& name, size_t count, int peer) {
    const size_t ranks = static_cast<size_t>(group.size());
    in_.assign(count * ranks, 1.0F);
    out_.assign(count * ranks, 0.0F);
    const DataType type = DataType::kF32;
    if (name == "start") {
      work_.emplace(group.Start(AllReduceCall(in_.data(), out_.data(), count, type)));
      return Status();
    }
    if (name == "barrier") return group.Barrier();
    if (name == "all_reduce") {
      const Status status = group.AllReduce(in_.data(), out_.data(), count, type);
      if (!status.ok()) return status;
      for (size_t i = 0; i < count; ++i) {
        if (out_[i] != static_cast<float>(ranks)) {
          return Internal(Format("index {}: got {:g}, expected {}", i, out_[i], ranks));
        }
      }
      return status;
    }
    if (name == "all_gather") return group.AllGather(in_.data(), out_.data(), count, type);
    if (name == "reduce_scatter") return group.ReduceScatter(in_.data(), out_.data(), count, type);
    if (name == "all_to_all") return group.AllToAll(in_.data(), out_.data(), count, type);
    if (name == "broadcast") return group.Broadcast(in_.data(), out_.data(), count, type, peer);
    if (name == "reduce") {
      return group.Reduce(in_.data(), out_.data(), count, type, ReduceOp::kSum, peer);
    }
    if (name == "send") return group.Send(in_.data(), count, type, peer);
    if (name == "recv") return group.Recv(out_.data(), count, type, peer);
    std::fprintf(stderr, "victim: unknown step '%s'\n", name.c_str());
    std::exit(2);
  }

  GroupOptions options_;
  std::vector<std::string> steps_;
  // Before the groups: buffers live until the groups are gone.
  std::vector<float> in_;
  std::vector<float> out_;
  std::vector<std::unique_ptr<Group>> groups_;
  std::optional<Work> work_;
};

int Probe(const std::string& backend) {
  for (const BackendInfo& info : Backends()) {
    if (info.name != backend) continue;
    if (!info.usable)
      std::fprintf(stderr, "skipped: %s: %s\n", info.name.c_str(), info.reason.c_str());
    return info.usable ? 0 : 77;
  }
  return 77;
}

int Main(int argc, char** argv) {
  alarm(kAlarmSeconds);
  GroupOptions options;
  options.slow_call = std::chrono::milliseconds(-1);
  bool threads = false;
  std::vector<std::vector<std::string>> steps(1);
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--backend" && i + 1 < argc) {
      options.backend = argv[++i];
    } else if (word == "--limit" && i + 1 < argc) {
      options.timeout = std::chrono::milliseconds(std::atol(argv[++i]));
    } else if (word == "--probe" && i + 1 < argc) {
      return Probe(argv[++i]);
    } else if (word == "--threads") {
      threads = true;
    } else if (word == "/") {
      steps.emplace_back();
    } else {
      steps.back().push_back(word);
    }
  }
  if (!threads) {
    Victim(options, steps[0]).Run();
    return 0;
  }
  std::vector<std::thread> running;
  options.size = static_cast<int>(steps.size());
  running_threads = options.size;
  for (size_t rank = 0; rank < steps.size(); ++rank) {
    options.rank = static_cast<int>(rank);
    running.emplace_back([options, mine = steps[rank]] { Victim(options, mine).Run(); });
  }
  for (std::thread& thread : running) thread.join();
  return 0;
}

}  // namespace
}  // namespace diapason

int main(int argc, char** argv) { return diapason::Main(argc, argv); }
