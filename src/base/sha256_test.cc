#include "base/sha256.h"

#include <gtest/gtest.h>

#include <cstdio>

namespace diapason {
namespace {

std::string Hex(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) {
    char digits[3];
    std::snprintf(digits, sizeof(digits), "%02x",
                  static_cast<unsigned>(static_cast<unsigned char>(c)));
    text += digits;
  }
  return text;
}

// The examples of FIPS 180-4, and the lengths around the end of a block.
TEST(Sha256, IsWhatTheStandardSays) {
  EXPECT_EQ(Hex(Sha256("")), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(Hex(Sha256("abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(Hex(Sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(Hex(Sha256(std::string(1000000, 'a'))),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  EXPECT_EQ(Hex(Sha256(std::string(55, 'b'))),
            "eb2c86e932179f4ba13fe8715a26124b77d6bad290b9b4c1cc140cf633300c19");
  EXPECT_EQ(Hex(Sha256(std::string(56, 'b'))),
            "a5fc6e203a4c2b657d0d153885932414b2ffc6a93f0f8bf8b3183315e5a7212c");
  EXPECT_EQ(Hex(Sha256(std::string(63, 'b'))),
            "94e419fabac7f930810f9636354042f8c1426d2f834d4ab65c93dc1e69326b13");
  EXPECT_EQ(Hex(Sha256(std::string(64, 'b'))),
            "a0fab1377f49a759b57f63318262ebe89fabfc990e8e93ceac2984561482b9d4");
  EXPECT_EQ(Hex(Sha256(std::string(65, 'b'))),
            "74b128f30cf83de43ddf4aafc40c7b50a7443d3c73a89a7cfca17e15e43d51ab");
  EXPECT_EQ(Hex(Sha256(std::string(119, 'b'))),
            "68297a9eb141ce16bbc0847da1c0c48e2858704feaa13993bde29f87a198a6e1");
  EXPECT_EQ(Hex(Sha256(std::string(120, 'b'))),
            "392add47fbaa8197a874ebe770a947a26dd6f2becce5f64688cc4d18c9da93bd");
}

// RFC 4231, test cases 1 to 4, 6 and 7.
TEST(HmacSha256, IsWhatTheStandardSays) {
  EXPECT_EQ(Hex(HmacSha256(std::string(20, '\x0b'), "Hi There")),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(Hex(HmacSha256("Jefe", "what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(Hex(HmacSha256(std::string(20, '\xaa'), std::string(50, '\xdd'))),
            "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe");
  std::string counting;
  for (char c = 1; c <= 25; ++c) counting.push_back(c);
  EXPECT_EQ(Hex(HmacSha256(counting, std::string(50, '\xcd'))),
            "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b");
  EXPECT_EQ(Hex(HmacSha256(std::string(131, '\xaa'),
                           "Test Using Larger Than Block-Size Key - Hash Key First")),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
  EXPECT_EQ(Hex(HmacSha256(std::string(131, '\xaa'),
                           "This is a test using a larger than block-size key and a larger than "
                           "block-size data. The key needs to be hashed before being used by the "
                           "HMAC algorithm.")),
            "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2");
}

TEST(SameInConstantTime, IsEquality) {
  EXPECT_TRUE(SameInConstantTime("", ""));
  EXPECT_TRUE(SameInConstantTime("abc", "abc"));
  for (const char* other : {"xbc", "axc", "abx", "ab", "abcd", ""}) {
    EXPECT_FALSE(SameInConstantTime("abc", other)) << other;
  }
}

}  // namespace
}  // namespace diapason
