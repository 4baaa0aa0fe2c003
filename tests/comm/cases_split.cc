// Groups of some of the ranks.
#include <algorithm>
#include <climits>
#include <cstdlib>

#include "base/text.h"
#include "exchange.h"

namespace diapason::conformance {
namespace {

// Splits `parent` and checks that the new group has exactly the right ranks in the right order:
// color and key are functions of the parent's rank, so that everyone knows everyone's.
std::unique_ptr<Group> SplitAndCheck(Session& session, Group& parent, const std::string& what,
                                     int (*color)(int rank, int size),
                                     int (*key)(int rank, int size)) {
  const int rank = parent.rank();
  const int size = parent.size();
  const int own = color(rank, size);
  auto split = parent.Split(own, key(rank, size));
  if (!session.Fine(split.status(), what)) return nullptr;
  std::unique_ptr<Group> group = std::move(split).value();
  if (own < 0) {
    session.Expect(group == nullptr, what + ": a group for a negative color");
    return nullptr;
  }
  if (!session.Expect(group != nullptr, what + ": no group")) return nullptr;

  std::vector<int> members;
  for (int other = 0; other < size; ++other) {
    if (color(other, size) == own) members.push_back(other);
  }
  std::stable_sort(members.begin(), members.end(),
                   [&](int a, int b) { return key(a, size) < key(b, size); });
  const auto place = std::find(members.begin(), members.end(), rank) - members.begin();
  session.Expect(group->size() == static_cast<int>(members.size()) && group->rank() == place,
                 Format("{}: rank {} of {}, expected {} of {}", what, group->rank(), group->size(),
                        static_cast<int>(place), members.size()));
  session.Expect(group->backend() == parent.backend(), what + ": another backend");
  const int32_t mine = rank;
  std::vector<int32_t> all(static_cast<size_t>(group->size()), -1);
  session.Fine(group->AllGather(&mine, all.data(), 1, DataType::kI32), what + ": all_gather");
  session.Expect(std::equal(all.begin(), all.end(), members.begin(), members.end()),
                 what + ": other members or another order");
  for (const Operation operation : {Operation::kAllReduce, Operation::kReduceScatter}) {
    Shape shape{operation, DataType::kF32, ReduceOp::kSum, 1021};
    shape.seed = 7000 + static_cast<uint64_t>(own);
    RunOne(session, *group, shape);
  }
  session.Fine(group->Barrier(), what + ": barrier");
  return group;
}

int ByRank(int rank, int /*size*/) { return rank; }
int Reversed(int rank, int /*size*/) { return -rank; }
int Same(int /*rank*/, int /*size*/) { return 0; }
int Halves(int rank, int size) { return rank < (size + 1) / 2 ? 0 : 1; }
int OddEven(int rank, int /*size*/) { return rank % 2; }

void Whole(Session& session) {
  SplitAndCheck(session, session.group(), "everyone", Same, ByRank);
  SplitAndCheck(session, session.group(), "everyone, equal keys", Same, Same);
  SplitAndCheck(session, session.group(), "everyone, reversed", Same, Reversed);
}

void Parts(Session& session) {
  SplitAndCheck(session, session.group(), "halves", Halves, ByRank);
  SplitAndCheck(session, session.group(), "odd and even", OddEven, ByRank);
  SplitAndCheck(session, session.group(), "odd and even, reversed", OddEven, Reversed);
  SplitAndCheck(
      session, session.group(), "singletons", [](int rank, int) { return rank * 1000; }, ByRank);
  SplitAndCheck(
      session, session.group(), "large colors", [](int rank, int) { return INT_MAX - rank % 2; },
      [](int rank, int) { return rank % 2 == 0 ? INT_MIN : INT_MAX; });
}

void Left(Session& session) {
  SplitAndCheck(
      session, session.group(), "the last one stays out",
      [](int rank, int size) { return rank == size - 1 ? -1 : 3; }, ByRank);
  SplitAndCheck(
      session, session.group(), "rank 0 stays out",
      [](int rank, int) { return rank == 0 ? -1 : 0; }, ByRank);
  SplitAndCheck(
      session, session.group(), "nobody", [](int, int) { return INT_MIN; }, ByRank);
  RunOne(session, session.group(), {Operation::kAllReduce, DataType::kF32, ReduceOp::kSum, 11});
}

// A group of a group outlives the one it came from, and the world goes on beside them.
void OfASplit(Session& session) {
  auto half = SplitAndCheck(session, session.group(), "halves", Halves, Reversed);
  if (half == nullptr) return;
  auto quarter = SplitAndCheck(session, *half, "halves of halves", Halves, ByRank);
  if (quarter == nullptr) return;
  RunOne(session, session.group(), {Operation::kAllReduce, DataType::kF32, ReduceOp::kSum, 11});
  half.reset();
  Shape shape{Operation::kAllReduce, DataType::kI32, ReduceOp::kSum, 257};
  shape.seed = 4242;
  RunOne(session, *quarter, shape);
  auto again = SplitAndCheck(session, *quarter, "a third level", Same, ByRank);
  quarter.reset();
  RunOne(session, session.group(), {Operation::kAllReduce, DataType::kF32, ReduceOp::kSum, 11});
}

// Several groups of the same ranks used in turns, with operations on their way in each.
void Interleaved(Session& session) {
  auto one = SplitAndCheck(session, session.group(), "first", OddEven, ByRank);
  auto two = SplitAndCheck(session, session.group(), "second", OddEven, Reversed);
  if (one == nullptr || two == nullptr) return;
  std::vector<Exchange> exchanges;
  exchanges.reserve(9);
  std::vector<Work> works;
  for (size_t i = 0; i < 3; ++i) {
    for (Group* group : {one.get(), &session.group(), two.get()}) {
      Shape shape{Operation::kAllReduce, DataType::kF32, ReduceOp::kSum, 300 * i + 1};
      shape.seed = 5000 + i;
      exchanges.emplace_back(session, *group, shape);
      works.push_back(group->Start(exchanges.back().call()));
    }
  }
  for (size_t i = works.size(); i-- > 0;) exchanges[i].Verify(works[i].Wait());
}

void Many(Session& session) {
  for (int i = 0; i < (session.settings().quick ? 3 : 12); ++i) {
    auto split = session.group().Split(i % 2 == 0 ? 0 : session.rank() % 2, 0);
    session.Fine(split.status(), "split");
    if (!split.ok()) return;
    int32_t one = 1;
    session.Fine(split.value()->AllReduce(&one, &one, 1, DataType::kI32), "all_reduce of ones");
    session.Expect(one == split.value()->size(), Format("{} ones", one));
  }
}

// A second world beside the first, and after it.
void SecondWorld(Session& session) {
  if (session.settings().device) return session.Note("a second world: not on one GPU");
  GroupOptions options = session.options();
  // The first one keeps its port as long as it lives.
  const char* port = std::getenv("MASTER_PORT");
  options.master_port = (port == nullptr ? 29500 : std::atoi(port)) + 37;
  for (int round = 0; round < 2; ++round) {
    auto created = Group::Create(options);
    session.Fine(created.status(), "creating a second world");
    if (!created.ok()) return;
    Group& second = *created.value();
    session.Expect(second.rank() == session.rank() && second.size() == session.size(),
                   Format("rank {} of {}", second.rank(), second.size()));
    RunOne(session, second, {Operation::kAllReduce, DataType::kF32, ReduceOp::kSum, 1023});
    RunOne(session, session.group(), {Operation::kAllReduce, DataType::kF32, ReduceOp::kSum, 11});
  }
}

}  // namespace

std::vector<Case> SplitCases() {
  return {{"split whole", Whole, true},
          {"split parts", Parts, true},
          {"split left out", Left, true},
          {"split of a split", OfASplit, true},
          {"split interleaved", Interleaved, true},
          {"split many", Many, true},
          {"second world", SecondWorld, true}};
}

}  // namespace diapason::conformance
