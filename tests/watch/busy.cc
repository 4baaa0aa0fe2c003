// A process that looks like a rank of a job from outside: threads with NCCL's names, a contended
// lock, memory that grows, a journal, and NCCL's dump of the proxy on a signal. Ends when its
// standard input does, or after ten minutes.
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <latch>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "journal/writer.h"

namespace {

using namespace std::chrono_literals;

std::atomic<bool> g_stop{false};
std::latch g_named{4};  // counted down by Spin, Serve, and Contend twice
std::mutex g_lock;
const char* g_proxy = "stuck";
volatile sig_atomic_t g_dumps = 0;

void SetName(const char* name) {
  const char* on = std::getenv("NCCL_SET_THREAD_NAME");
  if (on != nullptr && std::strcmp(on, "1") == 0) pthread_setname_np(pthread_self(), name);
  g_named.count_down();
}

// Character for character what NCCL prints, with printf and from the handler, as it does.
void PrintDump(int) {
  const int number = g_dumps;
  g_dumps = number + 1;
  printf("ACTIVE OPS\n");
  if (std::strcmp(g_proxy, "empty") != 0) {
    const long op = std::strcmp(g_proxy, "moving") == 0 ? 16 + 2 * number : 16;
    printf("[0-3|%ld| Coll 1 /0 1 /1]", op);
    printf("\n");
    printf("| `-> ");
    printf("[0-5|%ld| Recv 3R/0]", op + 1);
    printf("\n");
    printf("v\n");
    printf("[0-4|%ld| Send 2S/0]", op + 1);
    printf("\n");
    printf("|\n");
    printf("v\n");
  }
  printf("[X]\n");
}

void Spin() {
  SetName("NCCL Progress 0");
  while (!g_stop) {
    const uint64_t until = diapason::SteadyNs() + 3000000;
    while (diapason::SteadyNs() < until) sched_yield();
    std::this_thread::sleep_for(7ms);
  }
}

void Serve() {
  SetName("NCCL Service  0");
  while (!g_stop) poll(nullptr, 0, 20);
}

void Contend() {
  SetName("locked");
  while (!g_stop) {
    const std::lock_guard<std::mutex> hold(g_lock);
    std::this_thread::sleep_for(2ms);
  }
}

void WriteJournal(const char* path) {
  diapason::journal::Journal::Options options;
  options.path = path;
  auto opened = diapason::journal::Journal::Open(options);
  if (!opened.ok()) {
    std::fprintf(stderr, "%s\n", opened.status().message().c_str());
    std::exit(1);
  }
  diapason::journal::Journal& journal = *opened.value();
  diapason::journal::JournalComm communicator;
  communicator.number = 1;
  communicator.shape = {1, 2};
  communicator.mode = "learn";
  journal.AddCommunicator(communicator);
  for (uint32_t call = 1; !g_stop; ++call) {
    diapason::journal::JournalRecord record;
    record.communicator = 1;
    record.call = call;
    record.collective = static_cast<uint8_t>(diapason::Collective::kAllReduce);
    record.bytes = 1 << 20;
    record.time_ns = diapason::WallTimeNs();
    record.algorithm = 1;
    record.protocol = 2;
    record.applied = true;
    record.reason = diapason::Reason::kLearned;
    record.learning = true;
    record.epoch = call / 16;
    record.index = call;
    journal.Add(record);
    record.kind = diapason::journal::RecordKind::kRan;
    record.sequence = call;
    record.seconds = 100e-6;
    journal.Add(record);
    if (call % 16 == 0) {
      record.kind = diapason::journal::RecordKind::kReward;
      record.samples = 8;
      record.skew = 1;
      journal.Add(record);
    }
    std::this_thread::sleep_for(5ms);
  }
  journal.Stop();
}

}  // namespace

// busy [--proxy stuck|moving|empty] [--line-buffered] [--no-handler]
int main(int argc, char** argv) {
  bool handler = true;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--line-buffered") setvbuf(stdout, nullptr, _IOLBF, 4096);
    if (word == "--no-handler") handler = false;
    if (word == "--proxy" && i + 1 < argc) g_proxy = argv[++i];
  }
  const char* signal_text = std::getenv("NCCL_PROXY_DUMP_SIGNAL");
  if (handler && signal_text != nullptr) signal(std::atoi(signal_text), PrintDump);
  std::vector<std::thread> threads;
  threads.emplace_back(Spin);
  threads.emplace_back(Serve);
  threads.emplace_back(Contend);
  threads.emplace_back(Contend);
  if (const char* path = std::getenv("DIAPASON_JOURNAL"); path != nullptr) {
    threads.emplace_back(WriteJournal, path);
  }
  std::vector<std::unique_ptr<char[]>> grown;
  const uint64_t until = diapason::SteadyNs() + 600ull * 1000000000;
  g_named.wait();
  std::fprintf(stderr, "ready\n");
  while (diapason::SteadyNs() < until) {
    pollfd in{STDIN_FILENO, POLLIN, 0};
    if (poll(&in, 1, 50) > 0) {
      char byte;
      if (read(STDIN_FILENO, &byte, 1) <= 0) break;
    }
    if (grown.size() < 200) {
      grown.push_back(std::make_unique<char[]>(64 * 1024));
      std::memset(grown.back().get(), 1, 64 * 1024);
    }
  }
  g_stop = true;
  for (std::thread& thread : threads) thread.join();
  return 0;
}
