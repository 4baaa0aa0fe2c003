#include "job_profile/cycle.h"

#include <gtest/gtest.h>

namespace diapason::job_profile {
namespace {

// Calls by letters; an upper-case letter comes after a long pause.
Sequence FromText(const std::string& text) {
  Sequence sequence;
  for (const char letter : text) {
    const bool upper = letter >= 'A' && letter <= 'Z';
    sequence.kinds.push_back(static_cast<uint64_t>(upper ? letter - 'A' : letter - 'a') + 1);
    sequence.pauses.push_back(upper ? 100e-6 : 10e-6);
  }
  return sequence;
}

std::string Times(const std::string& text, int count) {
  std::string all;
  for (int i = 0; i < count; ++i) all += text;
  return all;
}

struct Found {
  size_t period = 0;
  size_t parts = 0;
  std::vector<Piece> pieces;
  size_t followed = 0;
};
Found Look(const std::string& text) {
  Sequence sequence = FromText(text);
  const Cycle cycle = FindCycle(&sequence);
  Found found{cycle.kinds.size(), cycle.parts, FindPieces(sequence, cycle), 0};
  for (const Piece& piece : found.pieces) found.followed += piece.followed ? 1 : 0;
  return found;
}

TEST(Cycle, StartUpIsNoPartOfIt) {
  const Found found = Look("xyzzyxx" + Times("Abc", 20));
  EXPECT_EQ(found.period, 3u);
  EXPECT_EQ(found.pieces.front().first, 7u);
  EXPECT_EQ(found.pieces.size(), 20u);
  EXPECT_EQ(found.followed, 19u);
}

TEST(Cycle, BeginsAfterTheLongestPause) {
  const Found found = Look(Times("abC", 20));
  EXPECT_EQ(found.period, 3u);
  EXPECT_EQ(found.pieces.front().first, 2u);
}

TEST(Cycle, LayersAreNoIterations) {
  EXPECT_EQ(Look(Times("A" + Times("a", 23) + Times("ba", 24), 12)).period, 72u);
  EXPECT_EQ(Look(Times("Aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab", 12)).period, 32u);
}

TEST(Cycle, EqualCallsHaveIterationsByTheirPauses) {
  const Found found = Look("aaaaa" + Times("A" + Times("a", 31), 12));
  EXPECT_EQ(found.period, 32u);
  EXPECT_EQ(found.pieces.front().first, 5u);
  EXPECT_EQ(Look(Times("a", 400)).period, 0u) << "evenly spaced calls have no iterations";
}

// Pauses by their length in microseconds.
Found LookAt(const std::vector<double>& pauses) {
  Sequence sequence;
  for (const double pause : pauses) {
    sequence.kinds.push_back(1);
    sequence.pauses.push_back(pause * 1e-6);
  }
  const Cycle cycle = FindCycle(&sequence);
  Found found{cycle.kinds.size(), cycle.parts, FindPieces(sequence, cycle), 0};
  for (const Piece& piece : found.pieces) found.followed += piece.followed ? 1 : 0;
  return found;
}

TEST(Cycle, HiccupsHideNoIterations) {
  std::vector<double> pauses;
  for (size_t i = 0; i < 60 * 32; ++i) {
    pauses.push_back(i % 32 == 0 ? 500 + static_cast<double>(i * 7 % 200) : 50);
    if (i % 150 == i / 150 * 37 % 140) pauses.back() = 4000;
  }
  const Found found = LookAt(pauses);
  EXPECT_EQ(found.period, 32u);
  EXPECT_GE(found.followed, 57u);
}

TEST(Cycle, SomeIterationsBeginWithoutALongPause) {
  std::vector<double> pauses;
  for (size_t i = 0; i < 60 * 32; ++i) {
    const bool early = i / 32 % 7 == 3;
    // They are of very different length.
    pauses.push_back(i % 32 != 0 ? 50 : early ? 55 : 600.0 * static_cast<double>(1 + i / 32 % 9));
  }
  const Found found = LookAt(pauses);
  EXPECT_EQ(found.period, 32u);
  EXPECT_GE(found.followed, 57u);
}

TEST(Cycle, LayersMayHavePausesOfTheirOwn) {
  std::vector<double> pauses;
  for (size_t i = 0; i < 60 * 32; ++i) {
    pauses.push_back(i % 32 == 0 ? 2000 : i % 8 == 0 ? 200 : 20);
  }
  EXPECT_EQ(LookAt(pauses).period, 32u);
}

TEST(Cycle, EveryTwentiethIterationMayHaveALongerPause) {
  std::vector<double> pauses;
  for (size_t i = 0; i < 200 * 16; ++i) {
    pauses.push_back(i % 320 == 0 ? 20000 : i % 16 == 0 ? 500 : 20);
  }
  EXPECT_EQ(LookAt(pauses).period, 16u);
}

TEST(Cycle, LongPausesAnywhereAreNoIterations) {
  std::vector<double> random;
  uint64_t state = 5;
  for (size_t i = 0; i < 2000; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    random.push_back(state >> 33 & 31 ? 50 : 900);
  }
  EXPECT_EQ(LookAt(random).period, 0u);
}

TEST(Cycle, EvaluationMayStandBetween) {
  const Found found = Look(Times("Abcd", 30) + Times("xy", 21) + Times("Abcd", 30));
  EXPECT_EQ(found.period, 4u);
  EXPECT_EQ(found.pieces.size(), 60u);
  EXPECT_EQ(found.followed, 58u) << "the last one before the evaluation has no length";
}

TEST(Cycle, EveryTenthIterationMayHaveCallsOfItsOwn) {
  for (const std::string longer : {"Abcdxx", "Abxcd"}) {
    const Found found = Look(Times(Times("Abcd", 9) + longer, 12));
    EXPECT_EQ(found.period, 4u) << longer;
    size_t extra = 0;
    for (const Piece& piece : found.pieces) extra += piece.extra > 0 ? 1 : 0;
    // The last one is not known to have ended.
    EXPECT_GE(found.pieces.size(), 119u) << longer;
    EXPECT_EQ(extra, 11u) << longer;
  }
}

TEST(Cycle, AccumulatedGradientsAreOneIteration) {
  const Found found = Look(Times("abcdabcdabcdabcdxY", 15));
  EXPECT_EQ(found.period, 18u);
  EXPECT_EQ(found.parts, 4u);
}

TEST(Cycle, NothingRepeats) {
  std::string text;
  for (int i = 0; i < 200; ++i) text += static_cast<char>('a' + (i * i + i / 7) % 23);
  EXPECT_EQ(Look(text).period, 0u);
  EXPECT_EQ(Look("").period, 0u);
  EXPECT_EQ(Look("abc").period, 0u);
}

}  // namespace
}  // namespace diapason::job_profile
