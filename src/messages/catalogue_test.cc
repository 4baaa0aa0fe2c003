#include "messages/catalogue.h"

#include <gtest/gtest.h>

#include <set>

#include "messages/tables.h"

namespace diapason::messages {
namespace {

TEST(Catalogue, TablesAreRead) {
  const Result<Catalogue> all = Catalogue::Parse(BuiltInTables());
  ASSERT_TRUE(all.ok()) << all.status().message();
  EXPECT_GT(all.value().messages().size(), 150U);
}

// Every example is its own entry, whatever stands before the line.
TEST(Catalogue, ExamplesAreTheirOwnEntries) {
  const Catalogue& catalogue = Catalogue::BuiltIn();
  const std::vector<std::string> prefixes = {"",
                                             "node1:100:140 [0] ",
                                             "[rank3]:[E1115 19:50:08.426415540 x.cpp:629] ",
                                             "[1,3]<stderr>:",
                                             " 3: ",
                                             "[default3]:",
                                             "2025-11-15T19:40:01.123456789Z ",
                                             "[pod/trainer-0/pytorch] "};
  for (const Message& message : catalogue.messages()) {
    for (const std::string& example : message.examples) {
      const bool warning = example.find("NCCL WARN ") != std::string::npos || message.only_warn;
      for (const std::string& prefix : prefixes) {
        const int found = catalogue.Classify(prefix + example, warning);
        ASSERT_GE(found, 0) << message.id << ": " << prefix << example;
        const Message& taken = catalogue.messages()[static_cast<size_t>(found)];
        EXPECT_EQ(taken.id + ": " + taken.title, message.id + ": " + message.title)
            << prefix << example;
      }
    }
  }
}

TEST(Catalogue, LinesOfHealthyJobsAreNone) {
  const Catalogue& catalogue = Catalogue::BuiltIn();
  for (const char* line :
       {"NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM", "NCCL INFO Connected all rings",
        "NCCL INFO NVLS multicast support is available on dev 0", "iteration 100 | loss: 2.31",
        "INFO 11-15 memory profiling results: duration=1.2 seconds, max_memory=12 GB"}) {
    EXPECT_LT(catalogue.Classify(line, false), 0) << line;
  }
}

std::string Replaced(std::string text, const std::string& old, const std::string& fresh) {
  return text.replace(text.find(old), old.size(), fresh);
}

TEST(Catalogue, ErrorsInTablesAreNamed) {
  const char* good =
      "[[message]]\nid='a'\ncause='program'\nfind=['12345678']\ntitle='t'\naction='a'\n"
      "example=['12345678']\n";
  EXPECT_TRUE(Catalogue::Parse({{"t", good}}).ok());
  const auto fails = [&](const std::string& text) {
    const Result<Catalogue> result = Catalogue::Parse({{"t", text}});
    return result.ok() ? std::string("no error") : result.status().message();
  };
  EXPECT_NE(fails(Replaced(good, "12345678']\ntitle", "1234567']\ntitle")).find("t:4"),
            std::string::npos);
  EXPECT_NE(fails(Replaced(good, "program", "magic")).find("t:3"), std::string::npos);
  EXPECT_NE(fails(std::string(good) + "colour='red'\n").find("colour"), std::string::npos);
  EXPECT_NE(fails("[[message]]\nid='a'\n").find("t:1"), std::string::npos);
  EXPECT_NE(fails("]]").find("t:1"), std::string::npos);
}

TEST(Matcher, FindsAllWordsAnywhere) {
  const Matcher matcher({"abcdefgh", "xxabcdefghyy", "12345678901", "hgfedcba"});
  const std::string text = "..xxabcdefghyy.12345678901";
  for (size_t padding = 0; padding < 20; ++padding) {
    const std::string padded = std::string(padding, '-') + text + std::string(padding, '-');
    std::vector<uint32_t> found;
    matcher.All(padded, &found);
    EXPECT_EQ(std::set<uint32_t>(found.begin(), found.end()), (std::set<uint32_t>{0, 1, 2}));
    const char* begin = padded.data();
    const char* end = begin + padded.size();
    EXPECT_LT(matcher.First(begin, end), end);
  }
  std::vector<uint32_t> none;
  matcher.All("abcdefg", &none);
  matcher.All("", &none);
  matcher.All("1234567890", &none);
  EXPECT_TRUE(none.empty());
}

TEST(Matcher, FindEachWordAtEachPlace) {
  const Matcher matcher({"NCCL INFO", "Watchdog", "createT:"});
  for (size_t before = 0; before < 40; ++before) {
    for (const std::string word : {"NCCL INFO", "Watchdog", "createT:"}) {
      const std::string text = std::string(before, 'N') + word + "...";
      EXPECT_EQ(matcher.First(text.data(), text.data() + text.size()), text.data() + before);
      const std::string cut = std::string(before, 'C') + word.substr(0, 7);
      EXPECT_EQ(matcher.First(cut.data(), cut.data() + cut.size()), cut.data() + cut.size());
    }
  }
}

}  // namespace
}  // namespace diapason::messages
