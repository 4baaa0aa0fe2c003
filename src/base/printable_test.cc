#include "base/printable.h"

#include <gtest/gtest.h>

namespace diapason {
namespace {

TEST(PrintableTest, WhatMovesTheCursorIsEscaped) {
  EXPECT_EQ(Printable("\x1b[31mred\a"), "\\x1b[31mred\\x07");
  EXPECT_EQ(Printable("a\tb\nc\rd\x7f"), "a\\x09b\\x0ac\\x0dd\\x7f");
  EXPECT_EQ(PrintableLines("a\nb\x1b\n"), "a\nb\\x1b\n");
  EXPECT_EQ(Printable(std::string_view("a\0b", 3)), "a\\x00b");
}

TEST(PrintableTest, ControlCharactersThatAreNotAsciiAreEscaped) {
  EXPECT_EQ(Printable("\xc2\x9b"
                      "2J"),
            "\\x9b2J");
  EXPECT_EQ(Printable("\x9b"
                      "2J"),
            "\\x9b2J")
      << "as a terminal without UTF-8 reads it";
  EXPECT_EQ(Printable("\xc0\x9b\xe2\x80"), "\\xc0\\x9b\\xe2\\x80") << "no UTF-8";
  EXPECT_EQ(Printable("\xed\xa0\x80"), "\\xed\\xa0\\x80") << "half a pair";
  EXPECT_EQ(Printable("a\xe2\x80\xae"
                      "b"),
            "a\\u202eb");
}

TEST(PrintableTest, TextStaysAsItIs) {
  for (const char* text : {"", "plain ~text", "\xc3\xa9t\xc3\xa9 \xe6\x97\xa5 \xf0\x9f\x98\x80"}) {
    EXPECT_EQ(Printable(text), text);
  }
}

TEST(PrintableTest, JsonSaysTheSame) {
  EXPECT_EQ(PrintableJson("{\"a\":\"x\x7fy\xc2\x9bz\xc3\xa9\"}"),
            "{\"a\":\"x\\u007fy\\u009bz\xc3\xa9\"}");
}

}  // namespace
}  // namespace diapason
