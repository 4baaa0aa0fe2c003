#include "job/shell_text.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace diapason::job {
namespace {

std::string Shown(const std::string& text) {
  std::string shown;
  for (const std::vector<ShellTextWord>& command : SimpleCommands(text)) {
    shown += "[";
    for (const ShellTextWord& word : command) {
      EXPECT_LT(word.begin, word.end);
      EXPECT_LE(word.end, text.size());
      shown += "<" + word.text + ">";
    }
    shown += "]";
  }
  return shown;
}

TEST(ShellTextTest, CommandsAndWords) {
  EXPECT_EQ(Shown("mpirun -n 2 ./a"), "[<mpirun><-n><2><./a>]");
  EXPECT_EQ(Shown("a;b&&c||d|e&f"), "[<a>][<b>][<c>][<d>][<e>][<f>]");
  EXPECT_EQ(Shown("a 'b c' \"d $e\" f\\ g"), "[<a><b c><d $e><f g>]");
  EXPECT_EQ(Shown("a # b\nc"), "[<a>][<c>]");
  EXPECT_EQ(Shown("a >log 2>&1 <in b"), "[<a><b>]");
  EXPECT_EQ(Shown("if a; then b; fi; for i in 1 2; do c; done"), "[<a>][<b>][<i><in><1><2>][<c>]");
  EXPECT_EQ(Shown("(cd x; exec b) "), "[<cd><x>][<b>]");
  EXPECT_EQ(Shown("a $(b; c) d"), "[<a><$(b; c)><d>]");
  EXPECT_EQ(Shown("a \\\n  b"), "[<a><b>]");
  EXPECT_EQ(Shown("cat <<X\nmpirun\nX"), "");
  EXPECT_EQ(Shown(""), "");
  EXPECT_EQ(Shown("'open"), "[<open>]");
}

TEST(ShellTextTest, AnyTextIsRead) {
  constexpr std::string_view kBytes = "ab $()'\"\\;|&<>#\n=-";
  const CounterRandom random(5, 1);
  uint64_t drawn = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string text;
    const int length = static_cast<int>(random.Uniform(drawn++) * 20);
    for (int k = 0; k < length; ++k) {
      text += kBytes[static_cast<size_t>(random.Uniform(drawn++) * kBytes.size())];
    }
    for (const std::vector<ShellTextWord>& command : SimpleCommands(text)) {
      for (const ShellTextWord& word : command) ASSERT_LE(word.end, text.size()) << text;
    }
  }
}

}  // namespace
}  // namespace diapason::job
