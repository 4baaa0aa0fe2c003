// comm_gpu: what only a GPU has, as one rank of a job: calls recorded into graphs, pinned
// configurations, and how long calls take. Every finding is one line of JSON on standard output;
// comm_lab.py reads them.
//
//   comm_gpu graph | pins | times
#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "../comm/device.h"
#include "base/text.h"
#include "diapason/comm.h"

namespace diapason {
namespace {

using conformance::DeviceAllocate;
using conformance::DeviceDownload;
using conformance::DeviceUpload;

constexpr unsigned kAlarmSeconds = 120;
constexpr size_t kCount = 10007;

// Graphs and streams of CUDA's driver.
struct Driver {
  int (*stream_create)(void**, unsigned) = nullptr;
  int (*stream_sync)(void*) = nullptr;
  int (*begin)(void*, int) = nullptr;
  int (*end)(void*, void**) = nullptr;
  int (*instantiate)(void**, void*, unsigned long long) = nullptr;
  int (*launch)(void*, void*) = nullptr;
  int (*exec_destroy)(void*) = nullptr;
  int (*graph_destroy)(void*) = nullptr;

  bool Open() {
    void* library = dlopen("libcuda.so.1", RTLD_NOW);
    if (library == nullptr) return false;
    const auto find = [&](const char* name, auto* function) {
      *function = reinterpret_cast<std::remove_pointer_t<decltype(function)>>(dlsym(library, name));
      return *function != nullptr;
    };
    return find("cuStreamCreate", &stream_create) && find("cuStreamSynchronize", &stream_sync) &&
           find("cuStreamBeginCapture_v2", &begin) && find("cuStreamEndCapture", &end) &&
           find("cuGraphInstantiateWithFlags", &instantiate) && find("cuGraphLaunch", &launch) &&
           find("cuGraphExecDestroy", &exec_destroy) && find("cuGraphDestroy", &graph_destroy);
  }
};

void Say(int rank, const std::string& what, bool ok, const std::string& more) {
  std::string text;
  for (const char c : more) {
    if (c == '"' || c == '\\') text += '\\';
    text += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  const std::string line =
      Format("{{\"rank\": {}, \"what\": \"{}\", \"ok\": {}, \"text\": \"{}\"}}\n", rank, what,
             ok ? "true" : "false", text);
  if (write(STDOUT_FILENO, line.data(), line.size()) < 0) std::abort();
}

// Whole numbers, small enough to be exact in bf16 with every number of ranks tried here.
std::vector<float> Input(int rank, size_t count, int round) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) {
    values[i] =
        static_cast<float>((rank + 1) * static_cast<int>((i + static_cast<size_t>(round)) % 3));
  }
  return values;
}

size_t Wrong(const std::vector<float>& values, int ranks, int round) {
  size_t wrong = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const auto want = static_cast<float>(ranks * (ranks + 1) / 2 *
                                         static_cast<int>((i + static_cast<size_t>(round)) % 3));
    if (values[i] != want) ++wrong;
  }
  return wrong;
}

struct Buffers {
  explicit Buffers(size_t count)
      : bytes(count * sizeof(float)), in(DeviceAllocate(bytes)), out(DeviceAllocate(bytes)) {}
  size_t bytes;
  void* in;
  void* out;
};

// What was recorded runs again and again, each time on what is in the buffers then.
void Graph(Group& group, const Driver& driver) {
  const int rank = group.rank();
  Buffers buffers(kCount);
  void* stream = nullptr;
  driver.stream_create(&stream, 1);
  for (const bool narrow : {false, true}) {
    const std::string name = narrow ? "graph of a call that travels as bf16" : "graph";
    // The library connects with its first call of a kind, which is not for a recording.
    Call call = AllReduceCall(buffers.in, buffers.out, kCount, DataType::kF32);
    if (narrow) call.wire = DataType::kBf16;
    Status status = group.Run(call);
    call.stream = stream;
    const uint64_t untimed = group.statistics().untimed;
    int error = driver.begin(stream, 0);
    Work work = group.Start(call);
    const bool done = work.Done();
    if (status.ok()) status = work.Wait();
    void* graph = nullptr;
    void* executable = nullptr;
    error |= driver.end(stream, &graph);
    if (error == 0) error = driver.instantiate(&executable, graph, 0);
    size_t wrong = 0;
    for (int round = 0; round < 4 && error == 0 && status.ok(); ++round) {
      std::vector<float> values = Input(rank, kCount, round);
      DeviceUpload(buffers.in, values.data(), buffers.bytes);
      driver.stream_sync(nullptr);  // an upload that has returned may not have ended
      error = driver.launch(executable, stream) | driver.stream_sync(stream);
      DeviceDownload(values.data(), buffers.out, buffers.bytes);
      wrong += Wrong(values, group.size(), round);
    }
    Say(rank, name,
        error == 0 && status.ok() && wrong == 0 && done &&
            group.statistics().untimed == untimed + 1,
        Format("CUDA {}, {} wrong, done {}, counted {}; {}", error, wrong, done ? 1 : 0,
               group.statistics().untimed - untimed, status.message()));
    if (executable != nullptr) driver.exec_destroy(executable);
    if (graph != nullptr) driver.graph_destroy(graph);
  }
  // Refused before anything is recorded, on every rank alike; the group goes on.
  std::vector<float> host(kCount, 1.0F);
  driver.begin(stream, 0);
  Call call = AllReduceCall(host.data(), host.data(), kCount, DataType::kF32);
  call.stream = stream;
  const Status refused = group.Start(call).Wait();
  void* graph = nullptr;
  driver.end(stream, &graph);
  if (graph != nullptr) driver.graph_destroy(graph);
  const Status after = group.Barrier();
  Say(rank, "host memory in a graph is refused",
      !refused.ok() && refused.message().find("graph") != std::string::npos && after.ok(),
      refused.message() + "; then: " + after.message());
}

// Each with a size of its own, so that the library's log tells them apart.
void Pins(Group& group) {
  Buffers buffers(size_t{1} << 20);
  const std::vector<float> values = Input(group.rank(), size_t{1} << 20, 0);
  DeviceUpload(buffers.in, values.data(), buffers.bytes);
  size_t count = 4096;
  for (const int algorithm : {0, 1}) {
    for (const int protocol : {0, 2}) {
      for (const int channels : {1, 2}) {
        count += 256;
        Call call = AllReduceCall(buffers.in, buffers.out, count, DataType::kF32);
        call.config = {algorithm, protocol, channels};
        const Status status = group.Run(call);
        std::vector<float> out(count);
        DeviceDownload(out.data(), buffers.out, count * sizeof(float));
        const size_t wrong = Wrong(out, group.size(), 0);
        Say(group.rank(),
            Format("pin {}/{} ch{} at {} bytes", algorithm, protocol, channels, count * 4),
            status.ok() && wrong == 0, Format("{} wrong; {}", wrong, status.message()));
      }
    }
  }
  // NVLink SHARP between ranks that are taken for hosts of their own: not offered. Said after the
  // call, which ran another way; the group is as good as before.
  Call call = AllReduceCall(buffers.in, buffers.out, 65536, DataType::kF32);
  call.config = {4, 2, 0};
  const Status refused = group.Run(call);
  const Status after = group.Barrier();
  Say(group.rank(), "a pair that is not offered",
      !refused.ok() && refused.message().find("nvls") != std::string::npos && after.ok(),
      refused.message() + "; then: " + after.message());
}

// The time of the slowest rank, as everybody waits for it; the median of several calls.
void Times(Group& group) {
  constexpr int kCalls = 21;
  Buffers buffers(size_t{1} << 20);
  std::vector<float> host(size_t{1} << 20, 1.0F);
  for (size_t count = 256; count <= size_t{1} << 20; count *= 8) {
    for (const char* kind : {"device", "device as bf16", "host"}) {
      const bool on_host = std::string(kind) == "host";
      Call call = AllReduceCall(on_host ? host.data() : buffers.in,
                                on_host ? host.data() : buffers.out, count, DataType::kF32);
      if (std::string(kind) == "device as bf16") call.wire = DataType::kBf16;
      std::vector<double> seconds;
      for (int i = 0; i < kCalls + 3; ++i) {
        static_cast<void>(group.Barrier());
        const double start = group.Now();
        const Status status = group.Run(call);
        double took = group.Now() - start;
        if (!status.ok()) return Say(group.rank(), "times", false, status.message());
        if (!group.AllReduce(&took, &took, 1, DataType::kF64, ReduceOp::kMax).ok()) return;
        if (i >= 3) seconds.push_back(took);
      }
      std::nth_element(seconds.begin(), seconds.begin() + kCalls / 2, seconds.end());
      if (group.rank() == 0) {
        Say(0, Format("time of {} bytes, {}", count * sizeof(float), kind), true,
            Format("{:.1f} us", seconds[kCalls / 2] * 1e6));
      }
    }
  }
}

int Main(int argc, char** argv) {
  const std::string mode = argc == 2 ? argv[1] : "";
  if (mode != "graph" && mode != "pins" && mode != "times") {
    std::fputs("comm_gpu graph | pins | times\n", stderr);
    return 2;
  }
  alarm(kAlarmSeconds);
  Driver driver;
  const std::string reason = conformance::BindDevice(0);
  if (!reason.empty() || !driver.Open()) {
    std::fprintf(stderr, "skipped: %s\n", reason.c_str());
    return 77;
  }
  GroupOptions options;
  options.backend = "nccl";
  options.timeout = std::chrono::seconds(30);
  options.slow_call = std::chrono::milliseconds(-1);
  options.choose = mode == "pins";
  auto created = Group::Create(options);
  if (!created.ok()) {
    Say(-1, "creation", false, created.status().message());
    return 1;
  }
  Group& group = *created.value();
  if (mode == "graph") Graph(group, driver);
  if (mode == "pins") Pins(group);
  if (mode == "times") Times(group);
  return 0;
}

}  // namespace
}  // namespace diapason

int main(int argc, char** argv) { return diapason::Main(argc, argv); }
