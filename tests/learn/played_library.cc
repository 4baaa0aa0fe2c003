#include "played_library.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <map>
#include <thread>

#include "library_words.h"

namespace {
int g_version = 22809;
}

extern "C" int ncclGetVersion(int* version) {
  *version = g_version;
  return 0;
}

namespace played {
namespace {

namespace abi = diapason::plugin::abi;

constexpr int kAlgorithms = 7;
constexpr int kProtocols = 3;
constexpr int kFirstWithV6 = 23000;
constexpr int kFirstNewSelection = 23100;
constexpr int kFirstWithProfilerV7 = 23100;
constexpr int kFirstWithV7 = 23206;
constexpr size_t kConstants = 1272 / sizeof(double);

int g_mask = 0;
int g_mask_from_outside = -1;
Listener g_listener = nullptr;
Questioner g_questioner;

void Log(int level, unsigned long, const char*, int, const char* format, ...) {
  char text[2048];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof(text), format, arguments);
  va_end(arguments);
  if (g_listener != nullptr) g_listener(level <= 2, text);
}

}  // namespace

void ListenToLog(Listener listener) { g_listener = listener; }

void WatchQuestions(const Questioner& questioner) { g_questioner = questioner; }

void PlayVersion(int version) { g_version = version; }

void ChangeMask(int mask) {
  g_mask_from_outside = mask;
  __atomic_store_n(&g_mask, mask, __ATOMIC_RELAXED);
}

int Mask() { return __atomic_load_n(&g_mask, __ATOMIC_RELAXED); }

Plugin LoadPlugin(const std::string& path) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    std::fprintf(stderr, "%s\n", dlerror());
    std::exit(2);
  }
  Plugin plugin;
  const bool v6 = g_version >= kFirstWithV6;
  plugin.tuner = static_cast<const abi::TunerV5*>(dlsym(library, g_version >= kFirstWithV7
                                                                     ? "ncclTunerPlugin_v7"
                                                                 : v6 ? "ncclTunerPlugin_v6"
                                                                      : "ncclTunerPlugin_v5"));
  plugin.profiler = static_cast<const abi::ProfilerV5<abi::EventV7>*>(
      dlsym(library, g_version >= kFirstWithProfilerV7 ? "ncclProfiler_v7"
                     : v6                              ? "ncclProfiler_v6"
                                                       : "ncclProfiler_v5"));
  plugin.step = reinterpret_cast<void (*)()>(dlsym(library, "diapason_step"));
  plugin.report = reinterpret_cast<int (*)(const char*, unsigned long long, double)>(
      dlsym(library, "diapason_report"));
  if (plugin.tuner == nullptr || plugin.profiler == nullptr || plugin.step == nullptr ||
      plugin.report == nullptr) {
    std::fprintf(stderr, "%s lacks a symbol\n", path.c_str());
    std::exit(2);
  }
  return plugin;
}

Communicator::Communicator(const Plugin& plugin, const Physics& physics, const Options& options)
    : plugin_(plugin), physics_(physics), options_(options) {
  if (options.profiler) {
    plugin.profiler->init(&profiler_, options.id, &g_mask, options.name, options.nodes,
                          options.ranks, options.rank, Log);
    if (g_mask_from_outside >= 0) ChangeMask(g_mask_from_outside);
  }
  // Gone when init returns; what a plugin writes there, 2.31 overwrites.
  double constants[kConstants] = {};
  status = plugin.tuner->init(&tuner_, options.id, static_cast<size_t>(options.ranks),
                              static_cast<size_t>(options.nodes), Log, nullptr,
                              reinterpret_cast<abi::Constants*>(constants));
}

Communicator::~Communicator() {
  plugin_.tuner->finalize(tuner_);
  if (options_.profiler) plugin_.profiler->finalize(profiler_);
}

void* Communicator::Start(uint64_t type, void* parent, const Call& call, const Choice& choice,
                          bool captured) {
  if (!options_.profiler) return nullptr;
  const char* name = CollectiveWord(call.collective);
  const bool of_all = call.collective == kAllGather || call.collective == kReduceScatter;
  const size_t bytes = of_all ? call.bytes / static_cast<size_t>(options_.ranks) : call.bytes;
  // What only moves data runs as bytes.
  const bool moves = call.collective == kAllGather || call.collective == kBroadcast;
  abi::EventV7 event = {};
  event.type = type;
  event.parent = parent;
  event.rank = options_.rank;
  if (type == abi::kEventCollApi) {
    event.coll_api = {name, bytes / 4, "ncclFloat32", 0, nullptr, captured, 0};
  } else if (type == abi::kEventColl) {
    event.coll = {sequence_++,
                  name,
                  nullptr,
                  nullptr,
                  moves ? bytes : bytes / 4,
                  0,
                  moves ? "ncclInt8" : "ncclFloat32",
                  static_cast<uint8_t>(choice.channels),
                  17,
                  AlgorithmWord(misreport_ ? 1 - choice.algorithm : choice.algorithm),
                  ProtocolWord(choice.protocol),
                  nullptr,
                  nullptr,
                  false,
                  0};
  }
  void* handle = reinterpret_cast<void*>(0xdead);
  plugin_.profiler->start_event(profiler_, &handle, &event);
  return handle;
}

void Communicator::Stop(void* event) {
  if (options_.profiler) plugin_.profiler->stop_event(event);
}

void Communicator::Fill(const Call& call, float* table) const {
  for (int a = 0; a < kAlgorithms; ++a) {
    for (int p = 0; p < kProtocols; ++p) {
      const bool exists = call.collective == kAllReduce || a != 0;  // only allreduce has trees
      const bool selected = call.selection < 0 || call.selection == a;
      table[a * kProtocols + p] =
          exists && selected ? static_cast<float>(physics_.Cost(call.bytes, a, p)) : -1.0f;
    }
  }
}

int Communicator::AskTuner(const Call& call, size_t bytes, int pipe_ops, float* table,
                           int* channels) {
  if (g_questioner.before != nullptr) g_questioner.before();
  const int error = plugin_.tuner->get_coll_info(tuner_, call.collective, bytes, pipe_ops,
                                                 reinterpret_cast<float**>(table), kAlgorithms,
                                                 kProtocols, 0, channels);
  if (g_questioner.after != nullptr) g_questioner.after();
  return error;
}

// 2.31 compares symmetric kernels first: with nothing in the table, then with the table of the call
// and without its latencies, both in cells of 1024 elements and without the factor of the ranks;
// and for allgather the ways of the copy engine, with nothing in the table. No answer matters.
void Communicator::AskAhead(const Call& call, int* error) {
  const bool of_all = call.collective == kAllGather || call.collective == kReduceScatter;
  const size_t one = of_all ? call.bytes / static_cast<size_t>(options_.ranks) : call.bytes;
  const size_t bytes = (one + 4095) / 4096 * 4096;
  float table[kAlgorithms * kProtocols];
  for (int step = 0; step < 3 && *error == 0; ++step) {
    if ((options_.asks_ahead >> step & 1) == 0) continue;
    if (step == 2 && call.collective != kAllGather) continue;
    std::fill(std::begin(table), std::end(table), -1.0f);
    if (step == 1) Fill(call, table);
    float before[kAlgorithms * kProtocols];
    std::copy(std::begin(table), std::end(table), before);
    int channels = 0;
    *error = AskTuner(call, bytes, step == 2 ? 1 : 0, table, &channels);
    if (channels != 0 || !std::equal(std::begin(table), std::end(table), before)) {
      std::fprintf(stderr, "a question about no call was answered\n");
      *error = 3;
    }
  }
}

int Communicator::Channels(int asked) const {
  const int own = options_.own_channels != 0 ? options_.own_channels : options_.channels;
  if (g_version < kFirstNewSelection) {
    return asked == 0 ? own : std::min(asked, options_.channels);
  }
  return std::max(asked > 0 && asked < own ? asked : own, options_.min_ctas);
}

Choice Communicator::Ask(const Call& call, int* error) {
  float table[kAlgorithms * kProtocols];
  float offered[kAlgorithms * kProtocols];
  int channels = 0;
  *error = 0;
  if (options_.asks_ahead != 0) AskAhead(call, error);
  if (*error != 0) return {};
  for (int times = options_.asks_twice ? 2 : 1; times > 0; --times) {
    Fill(call, table);
    std::copy(std::begin(table), std::end(table), offered);
    channels = 0;
    *error = AskTuner(call, call.bytes, 1, table, &channels);
  }
  const bool last_of_equals = g_version >= kFirstNewSelection;
  Choice choice;
  float best = 3.6e9f;
  for (int i = 0; i < kAlgorithms * kProtocols; ++i) {
    const bool read_back = last_of_equals ? offered[i] >= 0 : table[i] >= 0;
    if (!read_back || table[i] > best || (table[i] == best && !last_of_equals)) continue;
    best = table[i];
    choice.algorithm = i / kProtocols;
    choice.protocol = i % kProtocols;
  }
  choice.channels = Channels(channels);
  return choice;
}

// The GPU runs a call whose number has been counted.
void Communicator::Elapse(const Call& call, const Choice& choice) {
  if (physics_.Schedule(call, choice, &start_ns_, &stop_ns_)) {
    last_ = static_cast<double>(stop_ns_ - start_ns_) / 1000;
    return;
  }
  last_ = physics_.Time(call.bytes, choice, sequence_, options_.rank);
  start_ns_ = gpu_clock_;
  stop_ns_ = start_ns_ + static_cast<uint64_t>(last_ * 1000);
  gpu_clock_ = stop_ns_ + 5000;
}

void Communicator::Run(const Call& call, const Choice& choice, void* parent, bool timed) {
  void* run = Start(abi::kEventColl, parent, call, choice, false);
  Stop(run);
  Elapse(call, choice);
  if (!timed || !options_.profiler) return;
  std::vector<void*> channels;
  for (int channel = 0; channel < choice.channels; ++channel) {
    abi::EventV7 event = {};
    event.type = abi::kEventKernelCh;
    event.parent = run;
    event.kernel_ch = {static_cast<uint8_t>(channel),
                       start_ns_ + static_cast<uint64_t>(channel) * 300};
    void* handle = nullptr;
    plugin_.profiler->start_event(profiler_, &handle, &event);
    channels.push_back(handle);
  }
  for (void* handle : channels) {
    abi::StateV4 state = {};
    state.stamp = stop_ns_;
    plugin_.profiler->record_state(handle, abi::kStateKernelChStop, &state);
    plugin_.profiler->stop_event(handle);
  }
}

Choice Communicator::Make(const Call& call, Way way, int* error) {
  const int mask = Mask();  // the library reads it once per call
  const bool calls = (mask & abi::kEventCollApi) != 0;
  const bool runs = (mask & (abi::kEventColl | abi::kEventKernelCh)) != 0;
  const bool timed = (mask & abi::kEventKernelCh) != 0;
  const bool captured = way == Way::kCaptured;
  void* group = nullptr;
  void* called = nullptr;
  if (calls || runs) {
    group = Start(abi::kEventGroupApi, nullptr, {}, {}, captured);
    called = Start(abi::kEventCollApi, group, call, {}, captured);
    Stop(called);
  }
  Choice choice;
  const auto ask_and_launch = [&] {
    choice = Ask(call, error);
    if (*error != 0 || way == Way::kSimulated) return;
    if ((mask & abi::kEventKernelLaunch) != 0) {
      Stop(Start(abi::kEventKernelLaunch, group, {}, {}, false));
    }
    if (captured) {
      captured_call_ = called;
      return;
    }
    if (way == Way::kLate) {
      std::thread([&] { Run(call, choice, called, timed); }).join();
    } else if (runs) {
      Run(call, choice, called, timed);
    } else {
      ++sequence_;  // counted whether or not events are told
      Elapse(call, choice);
    }
  };
  if (way == Way::kNonBlocking) {
    if (group != nullptr) Stop(group);  // by the caller, before anything was asked
    std::thread(ask_and_launch).join();
  } else {
    ask_and_launch();
    if (group != nullptr) Stop(group);
  }
  return choice;
}

std::vector<Choice> Communicator::Group(const std::vector<size_t>& bytes, int* error) {
  const int mask = Mask();
  void* group = mask == 0 ? nullptr : Start(abi::kEventGroupApi, nullptr, {}, {}, false);
  std::vector<void*> calls(bytes.size());
  for (size_t i = 0; i < bytes.size() && mask != 0; ++i) {
    calls[i] = Start(abi::kEventCollApi, group, {kAllReduce, bytes[i]}, {}, false);
    Stop(calls[i]);
  }
  // Calls of one size are merged into one question.
  std::map<size_t, size_t> merged;
  for (const size_t one : bytes) merged[one] += one;
  std::map<size_t, Choice> choices;
  for (const auto& [one, sum] : merged) {
    choices[one] = Ask({kAllReduce, sum}, error);
    if (*error != 0) return {};
  }
  if ((mask & abi::kEventKernelLaunch) != 0) {
    Stop(Start(abi::kEventKernelLaunch, group, {}, {}, false));
  }
  std::vector<Choice> ran;
  for (size_t i = 0; i < bytes.size(); ++i) {
    ran.push_back(choices[bytes[i]]);
    if (mask == 0) {
      Elapse({kAllReduce, bytes[i]}, ran.back());
      continue;
    }
    Run({kAllReduce, bytes[i]}, ran.back(), calls[i], (mask & abi::kEventKernelCh) != 0);
  }
  if (group != nullptr) Stop(group);
  return ran;
}

std::vector<Choice> Communicator::Together(Communicator* first, Communicator* second,
                                           const Call& call, bool simulated, int* error) {
  const int mask = Mask();
  Communicator* const both[] = {first, second};
  void* group = mask == 0 ? nullptr : first->Start(abi::kEventGroupApi, nullptr, {}, {}, false);
  void* called[2] = {};
  for (int i = 0; i < 2 && mask != 0; ++i) {
    called[i] = both[i]->Start(abi::kEventCollApi, group, call, {}, false);
    both[i]->Stop(called[i]);
  }
  std::vector<Choice> choices;
  for (Communicator* one : both) {
    choices.push_back(one->Ask(call, error));
    if (*error != 0) return {};
  }
  for (int i = 0; i < 2 && !simulated; ++i) {
    if ((mask & abi::kEventKernelLaunch) != 0) {
      both[i]->Stop(both[i]->Start(abi::kEventKernelLaunch, group, {}, {}, false));
    }
    const bool runs = (mask & (abi::kEventColl | abi::kEventKernelCh)) != 0;
    if (runs) both[i]->Run(call, choices[i], called[i], (mask & abi::kEventKernelCh) != 0);
  }
  if (group != nullptr) first->Stop(group);
  return choices;
}

void Communicator::PointToPoint() {
  const int mask = Mask();
  if (mask == 0) return;
  void* group = Start(abi::kEventGroupApi, nullptr, {}, {}, false);
  if ((mask & abi::kEventP2pApi) != 0) Stop(Start(abi::kEventP2pApi, group, {}, {}, false));
  if ((mask & abi::kEventKernelLaunch) != 0) {
    Stop(Start(abi::kEventKernelLaunch, group, {}, {}, false));
  }
  if (group != nullptr) Stop(group);
}

void Communicator::Replay(size_t bytes, const Choice& choice, bool told) {
  const bool runs = told && (Mask() & abi::kEventColl) != 0;
  if (runs) {
    std::thread([&] { Run({kAllReduce, bytes}, choice, captured_call_, false); }).join();
  } else {
    Elapse({kAllReduce, bytes}, choice);
  }
}

}  // namespace played
