#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "agree/redis_link.h"
#include "agree/testing.h"

namespace diapason::agree {
namespace {

TEST(RedisAddress, AllParts) {
  const auto plain = ParseRedisAddress("redis://host");
  ASSERT_TRUE(plain.ok());
  EXPECT_EQ(plain.value().host, "host");
  EXPECT_EQ(plain.value().port, 6379);
  EXPECT_EQ(plain.value().database, 0);
  EXPECT_FALSE(plain.value().authenticate);

  const auto full = ParseRedisAddress("redis://me:p%40ss%3Aw%2F@[::1]:7000/3");
  ASSERT_TRUE(full.ok()) << full.status().message();
  EXPECT_EQ(full.value().user, "me");
  EXPECT_EQ(full.value().password, "p@ss:w/");
  EXPECT_EQ(full.value().host, "::1");
  EXPECT_EQ(full.value().port, 7000);
  EXPECT_EQ(full.value().database, 3);

  const auto only_password = ParseRedisAddress("redis://:a:b@c@10.0.0.1:1/");
  ASSERT_TRUE(only_password.ok());
  EXPECT_EQ(only_password.value().user, "");
  EXPECT_EQ(only_password.value().password, "a:b@c");
  EXPECT_EQ(only_password.value().host, "10.0.0.1");
}

TEST(RedisAddress, WrongOnesAreRefusedWithoutThePassword) {
  for (const char* url :
       {"redis://", "redis://:secret@", "redis://:secret@:6379", "redis://:secret@host:",
        "redis://:secret@host:0", "redis://:secret@host:65536", "redis://:secret@host:6x",
        "redis://:secret@host/x", "redis://:secret@::1", "redis://:secret@[::1",
        "redis://:secret@[::1]x", "redis://:secret%@host", "redis://:secret%4@host",
        "redis://:secret%zz@host", "redis://:secret@ho st", "redis://:secret@host/-1"}) {
    const auto address = ParseRedisAddress(url);
    ASSERT_FALSE(address.ok()) << url;
    EXPECT_EQ(address.status().message().find("secret"), std::string::npos) << url;
  }
}

TEST(RedisAddress, PasswordsInFiles) {
  const auto address = ParseRedisAddress("redis://me@host:7000/3?password-file=/a%20b/c@d%26");
  ASSERT_TRUE(address.ok()) << address.status().message();
  EXPECT_EQ(address.value().user, "me");
  EXPECT_EQ(address.value().host, "host");
  EXPECT_EQ(address.value().database, 3);
  EXPECT_EQ(address.value().password_file, "/a b/c@d&");
  EXPECT_TRUE(address.value().authenticate);
  const auto bare = ParseRedisAddress("redis://host?password-file=/x");
  ASSERT_TRUE(bare.ok());
  EXPECT_EQ(bare.value().host, "host");
  EXPECT_TRUE(bare.value().authenticate);
  for (const char* url : {"redis://me:secret@host?password-file=/x",
                          "redis://host?password-file=", "redis://host?password-file=relative",
                          "redis://host?password-file=/x%4", "redis://host?password-file=/x&more",
                          "redis://host?other=1", "redis://host/1?other=1"}) {
    const auto refused = ParseRedisAddress(url);
    ASSERT_FALSE(refused.ok()) << url;
    EXPECT_EQ(refused.status().message().find("secret"), std::string::npos);
  }
}

TEST(RedisAddress, APasswordsFileIsThisUsersAlone) {
  const TemporaryFolder folder;
  RedisAddress address;
  address.password_file = folder.path() + "/password";
  EXPECT_FALSE(ReadPasswordFile(&address).ok());
  const auto write = [&](const std::string& text) {
    std::ofstream(address.password_file, std::ios::trunc | std::ios::binary) << text;
    return ::chmod(address.password_file.c_str(), 0600) == 0;
  };
  ASSERT_TRUE(write("s3cret pass\nmore\n"));
  ASSERT_TRUE(ReadPasswordFile(&address).ok());
  EXPECT_EQ(address.password, "s3cret pass");
  ASSERT_TRUE(write("without an end"));
  ASSERT_TRUE(ReadPasswordFile(&address).ok());
  EXPECT_EQ(address.password, "without an end");
  for (const mode_t mode : {0640, 0604, 0601, 0660}) {
    ASSERT_EQ(::chmod(address.password_file.c_str(), mode), 0);
    const Status refused = ReadPasswordFile(&address);
    ASSERT_FALSE(refused.ok()) << mode;
    EXPECT_NE(refused.message().find("others may use it"), std::string::npos);
    EXPECT_EQ(refused.message().find("without"), std::string::npos);
  }
  for (const std::string& text : {std::string(), std::string("\nx"), std::string(5000, 's')}) {
    ASSERT_TRUE(write(text));
    EXPECT_FALSE(ReadPasswordFile(&address).ok());
  }
  if (::geteuid() == 0) {
    ASSERT_TRUE(write("x"));
    ASSERT_EQ(::chown(address.password_file.c_str(), 12345, 12345), 0);
    EXPECT_FALSE(ReadPasswordFile(&address).ok());
  }
  address.password_file = folder.path();
  EXPECT_FALSE(ReadPasswordFile(&address).ok());
}

}  // namespace
}  // namespace diapason::agree
