#include "job/store_choice.h"

#include <gtest/gtest.h>

#include "agree/cell_protocol.h"
#include "agree/store.h"
#include "base/text.h"

namespace diapason::job {
namespace {

constexpr char kSecret[] = "a secret that only tests have";

Result<StoreChoice> Choose(std::vector<std::string> words, const StoreRequest& request,
                           std::map<std::string, std::string> variables = {}) {
  const MapEnvironment environment(std::move(variables));
  ReadOptions options;
  options.version = [](const std::string&) { return "mpirun (Open MPI) 4.1.4"; };
  options.environment = &environment;
  return ChooseStore(ReadCommand(std::move(words), options), request, environment);
}

const std::vector<std::string> kTwoHosts = {"mpirun", "-H", "a,b", "./train"};
const std::vector<std::string> kOneHost = {"mpirun", "-n", "2", "./train"};

TEST(StoreChoice, OneHostNeedsNone) {
  EXPECT_EQ(Choose(kOneHost, {"", true, false}).value().where, "");
  EXPECT_EQ(Choose(kTwoHosts, {"", false, false}).value().where, "");
  EXPECT_EQ(Choose({"torchrun", "--nnodes", "2", "x.py"}, {"", true, false}).value().where, "");
}

TEST(StoreChoice, WhatTheUserNamesStays) {
  for (const char* where : {"shm", "file:/x", "redis://u:p@h"}) {
    const StoreChoice choice = Choose(kTwoHosts, {where, true, false}).value();
    EXPECT_EQ(choice.where, where);
    EXPECT_EQ(choice.served, nullptr);
    EXPECT_EQ(Choose(kTwoHosts, {"", true, false}, {{"DIAPASON_STORE", where}}).value().served,
              nullptr);
  }
  EXPECT_FALSE(Choose(kTwoHosts, {"tcp://h:0", true, false}).ok());
}

TEST(StoreChoice, SeveralHostsAgreeInAStoreOfThisProcess) {
  const StoreChoice choice = Choose(kTwoHosts, {"", true, false}).value();
  ASSERT_NE(choice.served, nullptr);
  agree::StoreOptions options;
  options.where = choice.where;
  options.job = "job";
  options.secret = choice.secret;
  options.limit = std::chrono::milliseconds(120000);
  const auto store = agree::OpenStore(options);
  ASSERT_TRUE(store.ok()) << store.status().message();
  EXPECT_EQ(store.value()->Propose("a", "1").value(), "1");
}

TEST(StoreChoice, TheUsersSecretIsUsed) {
  const StoreChoice choice =
      Choose(kTwoHosts, {"", true, false}, {{"DIAPASON_SECRET", kSecret}}).value();
  EXPECT_EQ(choice.secret, "");
  EXPECT_NE(choice.served, nullptr);
  EXPECT_FALSE(Choose(kTwoHosts, {"", true, false}, {{"DIAPASON_SECRET", "short"}}).ok());
}

TEST(StoreChoice, AnAddressOfThisHostIsServedUnlessAServerIsThere) {
  const auto first = cell_server::ServedStore::Start({"localhost", 0, kSecret}).value();
  // Another process serves it.
  EXPECT_FALSE(Choose(kOneHost, {first->url(), true, false}).ok());
  const StoreChoice used =
      Choose(kOneHost, {first->url(), true, false}, {{"DIAPASON_SECRET", kSecret}}).value();
  EXPECT_EQ(used.served, nullptr);
  EXPECT_EQ(used.where, first->url());
  // A host that is not this one.
  EXPECT_FALSE(Choose(kOneHost, {"tcp://192.0.2.7:5", true, false}).ok());
  EXPECT_EQ(Choose(kOneHost, {"tcp://192.0.2.7:5", true, false}, {{"DIAPASON_SECRET", kSecret}})
                .value()
                .served,
            nullptr);
  // torchrun on this host cannot hand a secret to the others.
  int port = 0;
  { const auto free = cell_server::ListenForStore("localhost", &port); }
  const std::string url = agree::TcpUrl({"localhost", port});
  const std::vector<std::string> torchrun = {"torchrun", "--nnodes", "2", "x.py"};
  EXPECT_FALSE(Choose(torchrun, {url, true, false}).ok());
  EXPECT_NE(Choose(torchrun, {url, true, false}, {{"DIAPASON_SECRET", kSecret}}).value().served,
            nullptr);
}

TEST(StoreChoice, ADryRunStartsNothing) {
  const StoreChoice choice = Choose(kTwoHosts, {"", true, true}).value();
  EXPECT_EQ(choice.served, nullptr);
  EXPECT_TRUE(choice.where.starts_with("tcp://"));
  EXPECT_TRUE(choice.where.ends_with(":PORT"));
}

}  // namespace
}  // namespace diapason::job
