#include "plugin/tuner/precedence.h"

#include <gtest/gtest.h>

namespace diapason::plugin {
namespace {

constexpr Config kPinned{kTree, kLl, 3};
constexpr Config kAgreedOn{kRing, kLl128, 4};
constexpr Config kOfRow{kRing, kSimple, 5};

policy::DecisionTable Rows(bool any) {
  policy::Policy policy;
  if (any) {
    policy::Rule rule;
    rule.collective = Collective::kAllReduce;
    rule.max_bytes = 4096;
    rule.config = kOfRow;
    policy.rules.push_back(rule);
  }
  return {policy, {{1, 8}, false, false}};
}

enum class Agreed { kNotLearned, kPair, kDefault, kLost };
enum class By { kLibrary, kPin, kAgreed, kRow };

// Every combination of what there is, and what has to decide it.
struct Case {
  bool pin;
  Agreed agreed;
  bool row;
  By by;
};
constexpr Case kCases[] = {
    {false, Agreed::kNotLearned, false, By::kLibrary},
    {false, Agreed::kNotLearned, true, By::kRow},
    {false, Agreed::kPair, false, By::kAgreed},
    {false, Agreed::kPair, true, By::kAgreed},
    {false, Agreed::kDefault, false, By::kAgreed},
    {false, Agreed::kDefault, true, By::kAgreed},  // the ranks have found the row to be slower
    {false, Agreed::kLost, false, By::kAgreed},
    {false, Agreed::kLost, true, By::kAgreed},
    {true, Agreed::kNotLearned, false, By::kPin},
    {true, Agreed::kNotLearned, true, By::kPin},
    {true, Agreed::kPair, false, By::kPin},
    {true, Agreed::kPair, true, By::kPin},
    {true, Agreed::kDefault, false, By::kPin},
    {true, Agreed::kDefault, true, By::kPin},
    {true, Agreed::kLost, false, By::kPin},
    {true, Agreed::kLost, true, By::kPin},
};

TEST(PrecedenceTest, APinThenTheAgreedThenARowThenTheLibrary) {
  for (const Case& one : kCases) {
    SCOPED_TRACE(testing::Message() << "pin " << one.pin << ", agreed "
                                    << static_cast<int>(one.agreed) << ", row " << one.row);
    for (const Config& pinned :
         {kPinned, Config()}) {  // the library's own choice can be pinned too
      PinnedChoice pin;
      if (one.pin) {
        ASSERT_TRUE(pin.Set(pinned.algorithm, pinned.protocol, pinned.channels));
      }
      LearningContext::Ready ready;
      ready.lost = one.agreed == Agreed::kLost;
      if (one.agreed == Agreed::kPair) ready.config = kAgreedOn;
      int asked = 0;
      const auto ask = [&]() -> const LearningContext::Ready* {
        ++asked;
        return one.agreed == Agreed::kNotLearned ? nullptr : &ready;
      };
      const policy::DecisionTable rows = Rows(one.row);
      const Choice choice = Choose(pin, ask, rows, {Collective::kAllReduce, 1024, 1, 0});

      EXPECT_EQ(asked, one.pin ? 0 : 1) << "asking counts the call";
      ASSERT_EQ(choice.pin != PinnedChoice::kNone, one.by == By::kPin);
      if (one.by == By::kPin) {
        EXPECT_EQ(PinnedChoice::Unpack(choice.pin), pinned);
      }
      EXPECT_EQ(choice.agreed, one.by == By::kAgreed ? &ready : nullptr);
      ASSERT_EQ(choice.row != nullptr, one.by == By::kRow);
      if (one.by == By::kRow) {
        EXPECT_EQ(choice.row->config(), kOfRow);
      }
    }
  }
}

// The default and the policy take turns: in each of them one of the two decides.
TEST(PrecedenceTest, InTurnsTheDefaultOrTheRow) {
  using Turn = LearningContext::Ready::Turn;
  const PinnedChoice pin;
  for (const Turn turn : {Turn::kDefault, Turn::kPolicy}) {
    for (const bool any : {false, true}) {
      LearningContext::Ready ready;
      ready.turn = turn;
      const auto ask = [&]() -> const LearningContext::Ready* { return &ready; };
      const policy::DecisionTable rows = Rows(any);
      const Choice choice = Choose(pin, ask, rows, {Collective::kAllReduce, 1024, 1, 0});
      const bool by_row = turn == Turn::kPolicy && any;
      const bool by_default = turn == Turn::kDefault && any;
      EXPECT_EQ(choice.row != nullptr, by_row);
      EXPECT_EQ(choice.agreed, by_default ? &ready : nullptr) << "without a row none differs";
      EXPECT_EQ(choice.turn, by_default ? nullptr : &ready);
      // A rank that does not know the turn fails the call.
      ready.lost = true;
      const Choice lost = Choose(pin, ask, rows, {Collective::kAllReduce, 1024, 1, 0});
      EXPECT_EQ(lost.agreed, &ready);
      EXPECT_EQ(lost.row, nullptr);
    }
  }
}

}  // namespace
}  // namespace diapason::plugin
