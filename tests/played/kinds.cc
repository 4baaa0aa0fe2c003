#include "kinds.h"

#include <array>
#include <cstdio>
#include <thread>

#include "virtual_clock.h"

namespace played {
namespace {

constexpr size_t kKib = 1024;
constexpr std::array<const char*, 13> kKinds{
    "decode", "alike",  "ddp",  "fsdp",           "two",    "tenth", "accumulate", "evaluate",
    "graph",  "groups", "none", "comes-and-goes", "replays"};
constexpr int kVersionWithoutGroups = 22900;

}  // namespace

bool Job::IsKind(const std::string& kind) {
  for (const char* one : kKinds) {
    if (kind == one) return true;
  }
  return false;
}

Job::Job(const Plugin& plugin, const JobOptions& options)
    : plugin_(plugin),
      options_(options),
      cluster_(options.cluster),
      begun_(std::chrono::steady_clock::now()) {}

Job::Member Job::Open(const char* name, size_t stream, int size, int apart) {
  std::vector<int> groups;
  int own_rank = 0;
  std::map<int, int> members;
  for (int rank = 0; rank < cluster_.ranks(); ++rank) {
    const int group = apart == 1 ? rank / size : rank % apart;
    if (rank == cluster_.self()) own_rank = members[group];
    ++members[group];
    groups.push_back(group);
  }
  SetVirtualTime(cluster_.host_now());
  Communicator::Options options;
  options.id = diapason::MixBits(options_.job ^ diapason::MixBits(++opened_)) ^
               static_cast<uint64_t>(groups[static_cast<size_t>(cluster_.self())] + 1);
  options.name = name;
  options.ranks = size;
  options.rank = own_rank;
  options.nodes = 1;
  options.channels = ClusterPhysics::kMostChannels;
  options.profiler = options_.profiler;
  Member member;
  member.stream = stream;
  member.physics = std::make_unique<ClusterPhysics>(&cluster_, stream, groups);
  member.communicator = std::make_unique<Communicator>(plugin_, *member.physics, options);
  if (member.communicator->status != 0) error_ = member.communicator->status;
  return member;
}

void Job::Make(Member* member, Call call, Communicator::Way way) {
  if (error_ != 0) return;
  SetVirtualTime(cluster_.host_now());
  member->communicator->Make(call, way, &error_);
  if (options_.made_call != nullptr) options_.made_call(++calls_);
}

void Job::MakeAndWait(Member* member, Call call) {
  Make(member, call);
  cluster_.WaitFor(member->stream);
}

// What frameworks do before the first iteration: sums of one element, parameters from rank 0.
void Job::StartUp(Member* member) {
  for (int i = 0; i < 3; ++i) MakeAndWait(member, {kAllReduce, 4});
  for (int i = 0; i < 7; ++i)
    MakeAndWait(member, {kBroadcast, (64u + 32u * static_cast<size_t>(i)) * kKib});
  cluster_.HostWork(50000);
  cluster_.Synchronize();
}

void Job::Begin(bool usual) { truth_.Begin(cluster_, usual); }

// The end of an iteration: the host looks at a result.
void Job::Step(int n) {
  cluster_.Synchronize();
  SetVirtualTime(cluster_.host_now());
  if (options_.real_time) {
    std::this_thread::sleep_until(begun_ + std::chrono::nanoseconds(cluster_.host_now()));
  }
  if (options_.steps) plugin_.step();
  if (options_.print_every > 0 && cluster_.self() == 0 && (n + 1) % options_.print_every == 0) {
    std::printf("step %d loss %.4f time %.3f ms\n", n + 1, 2.5 / (1 + 0.05 * n),
                static_cast<double>(cluster_.host_now() - last_step_) / 1e6);
    std::fflush(stdout);
  }
  last_step_ = cluster_.host_now();
  if (options_.stop_after > 0 && n + 1 == options_.stop_after) options_.stop();
}

// A token of a model with tensor parallel layers: everything waits for every allreduce.
void Job::Decode(bool alike) {
  Member tensor = Open("tensor", 0, cluster_.ranks(), 1);
  StartUp(&tensor);
  for (int n = 0; n < options_.iterations && error_ == 0; ++n) {
    Begin();
    for (int layer = 0; layer < 32; ++layer) {
      cluster_.Compute(60);
      MakeAndWait(&tensor, {kAllReduce, 32 * kKib});
    }
    if (!alike) MakeAndWait(&tensor, {kAllGather, 4 * kKib});
    cluster_.Compute(150);
    Step(n);
    cluster_.HostWork(100);
  }
}

// Gradients in buckets while the backward pass computes on.
void Job::Ddp(bool tenth) {
  Member data = Open("data", 0, cluster_.ranks(), 1);
  StartUp(&data);
  for (int n = 0; n < options_.iterations && error_ == 0; ++n) {
    const bool longer = tenth && n % 10 == 9;
    cluster_.Compute(4000);
    Begin(!longer);
    for (int bucket = 0; bucket < 12; ++bucket) {
      cluster_.Compute(900);
      Make(&data, {kAllReduce, bucket == 11 ? 768 * kKib : 1024 * kKib});
    }
    cluster_.WaitFor(data.stream);
    cluster_.Compute(700);
    if (longer) {
      cluster_.Compute(9000);
      MakeAndWait(&data, {kAllReduce, 8});
      MakeAndWait(&data, {kAllReduce, 16});
    }
    Step(n);
  }
}

// Parameters are gathered one layer ahead, gradients scattered behind.
void Job::Fsdp() {
  Member data = Open("data", 0, cluster_.ranks(), 1);
  StartUp(&data);
  constexpr int kLayers = 8;
  constexpr size_t kLayerBytes = 3 * 1024 * kKib;
  // The gather of the next layer runs while this one computes.
  for (int n = 0; n < options_.iterations && error_ == 0; ++n) {
    Begin();
    MakeAndWait(&data, {kAllGather, kLayerBytes});
    for (int layer = 0; layer < kLayers; ++layer) {
      if (layer + 1 < kLayers) Make(&data, {kAllGather, kLayerBytes});
      cluster_.Compute(1500);
      cluster_.WaitFor(data.stream);
    }
    for (int layer = 0; layer < kLayers; ++layer) {
      cluster_.Compute(2600);
      Make(&data, {kReduceScatter, kLayerBytes});
    }
    cluster_.WaitFor(data.stream);
    cluster_.Compute(500);
    Step(n);
  }
}

// Tensor parallel pairs, and data parallel groups across them.
void Job::Two() {
  const int pairs = cluster_.ranks() / 2;
  Member tensor = Open("tensor", 0, 2, 1);
  Member data = Open("data", 1, pairs, 2);
  StartUp(&tensor);
  StartUp(&data);
  for (int n = 0; n < options_.iterations && error_ == 0; ++n) {
    Begin();
    for (int layer = 0; layer < 6; ++layer) {
      cluster_.Compute(700);
      MakeAndWait(&tensor, {kAllReduce, 256 * kKib});
    }
    for (int layer = 0; layer < 6; ++layer) {
      cluster_.Compute(1400);
      MakeAndWait(&tensor, {kAllReduce, 256 * kKib});
      Make(&data, {kAllReduce, 1536 * kKib});
    }
    cluster_.WaitFor(data.stream);
    cluster_.Compute(600);
    Step(n);
  }
}

// Every fourth iteration has new communicators.
void Job::ComesAndGoes() {
  Member data = Open("data", 0, cluster_.ranks(), 1);
  StartUp(&data);
  for (int n = 0; n < options_.iterations && error_ == 0;) {
    Member expert = Open("expert", 1, 2, 1);
    for (int i = 0; i < 4 && n < options_.iterations && error_ == 0; ++i, ++n) {
      Begin();
      for (int layer = 0; layer < 4; ++layer) {
        cluster_.Compute(400);
        MakeAndWait(&expert, {kAllGather, 128 * kKib});
      }
      cluster_.Compute(900);
      MakeAndWait(&data, {kAllReduce, 2048 * kKib});
      cluster_.Compute(300);
      Step(n);
    }
    SetVirtualTime(cluster_.host_now());
  }
}

// Four parts each, with the gradients of all of them at the end.
void Job::Accumulate() {
  Member data = Open("data", 0, cluster_.ranks(), 1);
  StartUp(&data);
  for (int n = 0; n < options_.iterations && error_ == 0; ++n) {
    Begin();
    for (int part = 0; part < 4; ++part) {
      for (int layer = 0; layer < 4; ++layer) {
        MakeAndWait(&data, {kAllGather, (512 + 64 * static_cast<size_t>(layer)) * kKib});
        cluster_.Compute(800);
      }
    }
    for (int layer = 0; layer < 4; ++layer) {
      cluster_.Compute(900);
      Make(&data, {kReduceScatter, (512 + 64 * static_cast<size_t>(layer)) * kKib});
    }
    MakeAndWait(&data, {kAllReduce, 8});
    cluster_.Compute(2000);
    Step(n);
  }
}

// After every fifteen iterations: forward passes alone, and their mean.
void Job::Evaluate() {
  Member data = Open("data", 0, cluster_.ranks(), 1);
  StartUp(&data);
  for (int n = 0; n < options_.iterations && error_ == 0; ++n) {
    Begin();
    for (int bucket = 0; bucket < 6; ++bucket) {
      cluster_.Compute(800);
      Make(&data, {kAllReduce, 512 * kKib});
    }
    MakeAndWait(&data, {kAllReduce, 12});
    cluster_.Compute(2500);
    Step(n);
    if (n % 15 != 14) continue;
    truth_.End(cluster_);
    for (int batch = 0; batch < 9; ++batch) {
      cluster_.Compute(1200);
      MakeAndWait(&data, {kAllReduce, 64});
      MakeAndWait(&data, {kAllGather, 256 * kKib});
    }
  }
}

// Three of four calls are captured into a graph, which is replayed.
void Job::Graph() {
  Member tensor = Open("tensor", 0, cluster_.ranks(), 1);
  StartUp(&tensor);
  const Call call{kAllReduce, 64 * kKib};
  SetVirtualTime(cluster_.host_now());
  const Choice choice = tensor.communicator->Make(call, Communicator::Way::kCaptured, &error_);
  for (int n = 0; n < options_.iterations && error_ == 0; ++n) {
    Begin();
    for (int layer = 0; layer < 3; ++layer) {
      cluster_.Compute(200);
      SetVirtualTime(cluster_.host_now());
      tensor.communicator->Replay(call.bytes, choice);
      cluster_.WaitFor(tensor.stream);
      if (options_.made_call != nullptr) options_.made_call(++calls_);
    }
    cluster_.Compute(200);
    MakeAndWait(&tensor, {kAllGather, 256 * kKib});
    cluster_.Compute(400);
    Step(n);
  }
}

// A token of a model with tensor parallel layers, all of it in a graph whose replays are not
// reported. Before the capture some tokens are made call by call, as frameworks want it.
void Job::Replays() {
  constexpr int kLayers = 32;
  constexpr int kWarmUp = 4;
  const Call call{kAllReduce, 32 * kKib};
  Member tensor = Open("tensor", 0, cluster_.ranks(), 1);
  StartUp(&tensor);
  for (int layer = 0; layer < kWarmUp * kLayers && error_ == 0; ++layer) {
    cluster_.Compute(60);
    MakeAndWait(&tensor, call);
  }
  Choice choice;
  for (int layer = 0; layer < kLayers && error_ == 0; ++layer) {
    SetVirtualTime(cluster_.host_now());
    choice = tensor.communicator->Make(call, Communicator::Way::kCaptured, &error_);
  }
  for (int n = 0; n < options_.iterations && error_ == 0; ++n) {
    Begin();
    for (int layer = 0; layer < kLayers; ++layer) {
      cluster_.Compute(60);
      tensor.communicator->Replay(call.bytes, choice, false);
      cluster_.WaitFor(tensor.stream);
    }
    cluster_.Compute(150);
    Step(n);
    cluster_.HostWork(100);
    if (options_.made_call != nullptr) options_.made_call(++calls_);
  }
}

// 2.29: calls in groups, and broadcasts.
void Job::Groups() {
  PlayVersion(kVersionWithoutGroups);
  Member data = Open("data", 0, cluster_.ranks(), 1);
  StartUp(&data);
  for (int n = 0; n < options_.iterations && error_ == 0; ++n) {
    Begin();
    cluster_.Compute(1000);
    SetVirtualTime(cluster_.host_now());
    data.communicator->Group({256 * kKib, 512 * kKib}, &error_);
    cluster_.WaitFor(data.stream);
    cluster_.Compute(500);
    MakeAndWait(&data, {kBroadcast, 128 * kKib});
    cluster_.Compute(500);
    MakeAndWait(&data, {kAllReduce, 1024 * kKib});
    cluster_.Compute(800);
    Step(n);
  }
}

// Calls of all sizes in no order.
void Job::Nothing() {
  Member data = Open("data", 0, cluster_.ranks(), 1);
  const diapason::CounterRandom random(options_.cluster.seed, 7);
  for (int n = 0; n < options_.iterations * 5 && error_ == 0; ++n) {
    const auto index = static_cast<uint64_t>(n);
    cluster_.Compute(100 + 400 * random.Uniform(3 * index));
    const int collectives[] = {kAllReduce, kAllGather, kReduceScatter, kBroadcast};
    MakeAndWait(&data, {collectives[random.Bits(3 * index + 1) % 4],
                        (1 + random.Bits(3 * index + 2) % 4096) * kKib});
  }
}

bool Job::Run() {
  const std::string& kind = options_.kind;
  if (kind == "decode" || kind == "alike") {
    Decode(kind == "alike");
  } else if (kind == "ddp" || kind == "tenth") {
    Ddp(kind == "tenth");
  } else if (kind == "fsdp") {
    Fsdp();
  } else if (kind == "two") {
    Two();
  } else if (kind == "comes-and-goes") {
    ComesAndGoes();
  } else if (kind == "accumulate") {
    Accumulate();
  } else if (kind == "evaluate") {
    Evaluate();
  } else if (kind == "graph") {
    Graph();
  } else if (kind == "replays") {
    Replays();
  } else if (kind == "groups") {
    Groups();
  } else {
    Nothing();
  }
  return error_ == 0;
}

}  // namespace played
