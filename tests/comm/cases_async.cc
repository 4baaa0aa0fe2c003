// Operations on their way: several at once, waited for in any order, or not at all.
#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>

#include "base/text.h"
#include "exchange.h"

namespace diapason::conformance {
namespace {

// A different operation, type and size for every number.
Shape Mixed(Session& session, size_t number) {
  constexpr Operation kOperations[] = {Operation::kAllReduce,     Operation::kBroadcast,
                                       Operation::kAllGather,     Operation::kReduce,
                                       Operation::kReduceScatter, Operation::kAllToAll};
  const Operation operation = kOperations[number % std::size(kOperations)];
  return {operation,
          kTypes[number * 3 % std::size(kTypes)],
          ReduceOp::kSum,
          number * number * 37 + 1,
          operation != Operation::kAllToAll && number % 2 == 1,
          static_cast<int>(number % static_cast<size_t>(session.size()))};
}

struct Flight {
  std::vector<Exchange> exchanges;
  std::vector<Work> works;
};

Flight StartMixed(Session& session, size_t count) {
  Flight flight;
  // Calls point into the exchanges.
  flight.exchanges.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    flight.exchanges.emplace_back(session, session.group(), Mixed(session, i));
    flight.works.push_back(session.group().Start(flight.exchanges.back().call()));
  }
  return flight;
}

void InOrder(Session& session) {
  Flight flight = StartMixed(session, 12);
  for (size_t i = 0; i < 12; ++i) flight.exchanges[i].Verify(flight.works[i].Wait());
}

void OutOfOrder(Session& session) {
  Flight flight = StartMixed(session, 12);
  // Each rank in an order of its own: waiting is nothing the ranks have to agree on.
  std::vector<size_t> order(12);
  for (size_t i = 0; i < order.size(); ++i) {
    order[i] = (i * 5 + static_cast<size_t>(session.rank())) % 12;
  }
  for (const size_t i : order) flight.exchanges[i].Verify(flight.works[i].Wait());
}

void WithBlocking(Session& session) {
  Flight flight = StartMixed(session, 6);
  RunOne(session, session.group(), {Operation::kAllReduce, DataType::kF64, ReduceOp::kSum, 77});
  session.Fine(session.group().Barrier(), "barrier while others are on their way");
  flight.exchanges[5].Verify(flight.works[5].Wait());
  RunOne(session, session.group(), {Operation::kAllGather, DataType::kI8, ReduceOp::kSum, 5});
  for (size_t i = 0; i < 5; ++i) flight.exchanges[i].Verify(flight.works[i].Wait());
}

void DoneTurnsTrue(Session& session) {
  Flight flight = StartMixed(session, 4);
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(300);
  for (size_t i = 0; i < 4; ++i) {
    bool done = false;
    while (!(done = flight.works[i].Done()) && std::chrono::steady_clock::now() < limit) {
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    session.Expect(done, Format("work {} is not done after a minute of asking", i));
    flight.exchanges[i].Verify(flight.works[i].Wait());
    session.Expect(flight.works[i].Done(), "not done after Wait");
    session.Fine(flight.works[i].Wait(), "a second Wait");
  }
}

void WithLimit(Session& session) {
  Exchange exchange(session, session.group(),
                    {Operation::kAllReduce, DataType::kF32, ReduceOp::kSum, 1000});
  Work work = session.group().Start(exchange.call());
  exchange.Verify(work.Wait(std::chrono::seconds(300)));
}

void Moved(Session& session) {
  Flight flight = StartMixed(session, 2);
  Work first = std::move(flight.works[0]);
  flight.works[1] = std::move(first);
  flight.exchanges[0].Verify(flight.works[1].Wait());
  // The second one was dropped by the assignment; calls run in order, so this ends it.
  RunOne(session, session.group(), {Operation::kAllReduce, DataType::kI32, ReduceOp::kSum, 9});
  flight.exchanges[1].Verify(Status());
}

void Dropped(Session& session) {
  std::vector<Exchange> exchanges;
  exchanges.reserve(5);
  for (size_t i = 0; i < 5; ++i) {
    exchanges.emplace_back(session, session.group(), Mixed(session, i));
    (void)session.group().Start(exchanges.back().call());
  }
  RunOne(session, session.group(), {Operation::kAllReduce, DataType::kI32, ReduceOp::kSum, 9});
  for (Exchange& exchange : exchanges) exchange.Verify(Status());
}

void DroppedWithTheGroup(Session& session) {
  auto split = session.group().Split(0, session.rank());
  session.Fine(split.status(), "split");
  if (!split.ok()) return;
  std::optional<Exchange> exchange;
  exchange.emplace(session, *split.value(),
                   Shape{Operation::kAllReduce, DataType::kF32, ReduceOp::kSum, 100000});
  { const Work work = split.value()->Start(exchange->call()); }
  split.value().reset();
  exchange.reset();
  RunOne(session, session.group(), {Operation::kAllReduce, DataType::kI32, ReduceOp::kSum, 9});
}

void ManyInFlight(Session& session) {
  std::vector<Exchange> exchanges;
  exchanges.reserve(100);
  std::vector<Work> works;
  for (size_t i = 0; i < 100; ++i) {
    exchanges.emplace_back(
        session, session.group(),
        Shape{Operation::kAllReduce, DataType::kF32, ReduceOp::kSum, i * 91 % 1999, i % 2 == 0});
    works.push_back(session.group().Start(exchanges.back().call()));
  }
  for (size_t i = 100; i-- > 0;) exchanges[i].Verify(works[i].Wait());
}

void Large(Session& session) {
  std::vector<Exchange> exchanges;
  exchanges.reserve(3);
  std::vector<Work> works;
  for (size_t i = 0; i < 3; ++i) {
    exchanges.emplace_back(
        session, session.group(),
        Shape{Operation::kAllReduce, DataType::kF32, ReduceOp::kSum, (size_t{1} << 20) + i, true});
    works.push_back(session.group().Start(exchanges.back().call()));
  }
  for (const size_t i : {1, 2, 0}) exchanges[i].Verify(works[i].Wait());
}

void CoalescedStarted(Session& session) {
  std::vector<Exchange> exchanges;
  exchanges.reserve(3);
  std::vector<Tensor> tensors;
  for (const size_t count : {100, 0, 3001}) {
    exchanges.emplace_back(session, session.group(),
                           Shape{Operation::kAllReduce, DataType::kF16, ReduceOp::kSum, count});
    const Call& call = exchanges.back().call();
    tensors.push_back({call.in, call.out, call.count});
  }
  Work work = session.group().Start(CoalescedAllReduceCall(tensors, DataType::kF16));
  const Status status = work.Wait();
  for (Exchange& exchange : exchanges) exchange.Verify(status);
}

void BarrierStarted(Session& session) {
  Work work = session.group().Start(BarrierCall());
  session.Fine(work.Wait(), "barrier");
  Work nothing = session.group().Start(AllReduceCall(nullptr, nullptr, 0, DataType::kF32));
  session.Fine(nothing.Wait(), "all_reduce of nothing");
}

// Two groups of the same ranks, each used by a thread of its own: neither waits for the other.
void TwoGroupsTwoThreads(Session& session) {
  if (session.group().backend() == "nccl" || session.group().backend() == "rccl") {
    session.Note("two groups in two threads: not on GPUs, where the order must be the same");
    return;
  }
  auto one = session.group().Split(0, session.rank());
  auto two = session.group().Split(0, -session.rank());
  session.Fine(one.status(), "split one");
  session.Fine(two.status(), "split two");
  if (!one.ok() || !two.ok()) return;
  const auto loop = [](Group& group) {
    for (int i = 0; i < 100; ++i) {
      std::vector<int32_t> data(static_cast<size_t>(i % 20) * 100 + 1, group.rank() + i);
      const Status status = group.AllReduce(data.data(), data.data(), data.size(), DataType::kI32);
      if (!status.ok()) return status.message();
      const int expected = group.size() * (group.size() - 1) / 2 + i * group.size();
      if (std::any_of(data.begin(), data.end(), [&](int32_t got) { return got != expected; })) {
        return Format("round {}: got {}, expected {}", i, data[0], expected);
      }
    }
    return std::string();
  };
  std::string other;
  std::thread thread([&] { other = loop(*two.value()); });
  const std::string own = loop(*one.value());
  thread.join();
  session.Expect(own.empty(), "the first group: " + own);
  session.Expect(other.empty(), "the second group: " + other);
}

}  // namespace

std::vector<Case> AsyncCases() {
  return {{"async in order", InOrder, true},
          {"async out of order", OutOfOrder, true},
          {"async with blocking calls", WithBlocking, true},
          {"async Done", DoneTurnsTrue, true},
          {"async with a limit", WithLimit, true},
          {"async moved", Moved, true},
          {"async dropped", Dropped, true},
          {"async dropped with the group", DroppedWithTheGroup, true},
          {"async many", ManyInFlight, true},
          {"async large", Large, false},
          {"async coalesced", CoalescedStarted, true},
          {"async barrier", BarrierStarted, true},
          {"async two threads", TwoGroupsTwoThreads, true}};
}

}  // namespace diapason::conformance
