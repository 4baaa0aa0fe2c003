// send and recv.
#include "base/text.h"
#include "exchange.h"

namespace diapason::conformance {
namespace {

// The same data on both sides, whoever asks.
uint64_t PairSeed(int from, int to, uint64_t number) {
  return Hash(number, static_cast<uint64_t>(from), static_cast<uint64_t>(to)) | 1;
}

Shape SendShape(Session& session, int to, DataType type, size_t count, uint64_t number) {
  return {.operation = Operation::kSend,
          .type = type,
          .count = count,
          .root = to,
          .seed = PairSeed(session.rank(), to, number)};
}

Shape RecvShape(Session& session, int from, DataType type, size_t count, uint64_t number) {
  return {.operation = Operation::kRecv,
          .type = type,
          .count = count,
          .root = from,
          .seed = PairSeed(from, session.rank(), number)};
}

int Next(Session& session) { return (session.rank() + 1) % session.size(); }
int Previous(Session& session) { return (session.rank() + session.size() - 1) % session.size(); }

void Pairs(Session& session) {
  const int other = session.rank() ^ 1;
  if (other >= session.size()) return;
  for (const DataType type : kTypes) {
    for (const size_t count : {size_t{1}, size_t{7}, size_t{4097}}) {
      const uint64_t number = count * 16 + static_cast<uint64_t>(type);
      for (const bool up : {true, false}) {
        const bool sends = (session.rank() < other) == up;
        RunOne(session, session.group(),
               sends ? SendShape(session, other, type, count, number)
                     : RecvShape(session, other, type, count, number));
      }
    }
  }
}

// Everyone with everyone, blocking: rank 0 first sends to all, and so on.
void Everyone(Session& session) {
  const int limit = std::min(session.size(), 8);
  for (int from = 0; from < limit; ++from) {
    for (int to = 0; to < limit; ++to) {
      if (from == to) continue;
      const uint64_t number = static_cast<uint64_t>(from * 100 + to);
      if (session.rank() == from) {
        RunOne(session, session.group(), SendShape(session, to, DataType::kI32, 65, number));
      }
      if (session.rank() == to) {
        RunOne(session, session.group(), RecvShape(session, from, DataType::kI32, 65, number));
      }
    }
  }
}

void Ring(Session& session) {
  for (const size_t count : {size_t{0}, size_t{1}, size_t{1025}, size_t{300000}}) {
    if (session.settings().quick && count > 100000) continue;
    Exchange send(session, session.group(),
                  SendShape(session, Next(session), DataType::kF32, count, count));
    Exchange recv(session, session.group(),
                  RecvShape(session, Previous(session), DataType::kF32, count, count));
    Work receiving = session.group().Start(recv.call());
    Work sending = session.group().Start(send.call());
    send.Verify(sending.Wait());
    recv.Verify(receiving.Wait());
  }
}

// Both directions at once, more than sockets buffer, and the sends started first.
void BothWays(Session& session) {
  if (session.size() == 2) {
    // Next and previous are one rank: its messages arrive in the order in which they were sent.
    session.Note("both ways with two ranks: one message each way");
  }
  const size_t count = session.settings().quick ? 10000 : 1000003;
  std::vector<Exchange> exchanges;
  exchanges.reserve(4);
  std::vector<Shape> shapes = {SendShape(session, Next(session), DataType::kF32, count, 5),
                               RecvShape(session, Previous(session), DataType::kF32, count, 5)};
  if (session.size() > 2) {
    shapes.insert(shapes.begin() + 1,
                  SendShape(session, Previous(session), DataType::kF32, count, 6));
    shapes.push_back(RecvShape(session, Next(session), DataType::kF32, count, 6));
  }
  std::vector<Work> works;
  for (const Shape& shape : shapes) {
    exchanges.emplace_back(session, session.group(), shape);
    works.push_back(session.group().Start(exchanges.back().call()));
  }
  for (size_t i = 0; i < works.size(); ++i) exchanges[i].Verify(works[i].Wait());
}

// Messages between two ranks do not overtake one another, whatever their size, and whichever side
// is there first: `first` is known to have started everything before the other starts anything.
void InSequence(Session& session, Operation first) {
  auto split = session.group().Split(0, session.rank());
  session.Fine(split.status(), "split");
  if (!split.ok()) return;
  const int other = session.rank() ^ 1;
  const bool sends = session.rank() < other;
  const bool waits = (first == Operation::kSend) != sends;
  if (waits) session.Fine(split.value()->Barrier(), "barrier");
  const size_t counts[] = {1000, 1, 20000, 0, 3, 500, 1, 1};
  std::vector<Exchange> exchanges;
  exchanges.reserve(std::size(counts));
  std::vector<Work> works;
  for (size_t i = 0; i < std::size(counts) && other < session.size(); ++i) {
    exchanges.emplace_back(session, session.group(),
                           sends ? SendShape(session, other, DataType::kI64, counts[i], 900 + i)
                                 : RecvShape(session, other, DataType::kI64, counts[i], 900 + i));
    works.push_back(session.group().Start(exchanges.back().call()));
  }
  if (!waits) session.Fine(split.value()->Barrier(), "barrier");
  for (size_t i = works.size(); i-- > 0;) exchanges[i].Verify(works[i].Wait());
}

// Between collectives, and while one is on its way.
void AmongCollectives(Session& session) {
  Exchange all(session, session.group(),
               {Operation::kAllReduce, DataType::kF32, ReduceOp::kSum, 5003});
  Work work = session.group().Start(all.call());
  Ring(session);
  all.Verify(work.Wait());
  RunOne(session, session.group(), {Operation::kAllGather, DataType::kU8, ReduceOp::kSum, 3});
}

void SendsFirst(Session& session) { InSequence(session, Operation::kSend); }
void RecvsFirst(Session& session) { InSequence(session, Operation::kRecv); }

void NeedsTwo(Session& session, void (*run)(Session&)) {
  if (session.size() == 1) return session.Note("send and recv: need two ranks");
  run(session);
  session.Fine(session.group().Barrier(), "barrier after sends");
}

}  // namespace

std::vector<Case> PointToPointCases() {
  return {{"send pairs", [](Session& session) { NeedsTwo(session, Pairs); }, true},
          {"send everyone", [](Session& session) { NeedsTwo(session, Everyone); }, false},
          {"send ring", [](Session& session) { NeedsTwo(session, Ring); }, true},
          {"send both ways", [](Session& session) { NeedsTwo(session, BothWays); }, true},
          {"send in sequence", [](Session& session) { NeedsTwo(session, SendsFirst); }, true},
          {"recv in sequence", [](Session& session) { NeedsTwo(session, RecvsFirst); }, true},
          {"send among collectives", [](Session& session) { NeedsTwo(session, AmongCollectives); },
           true}};
}

}  // namespace diapason::conformance
