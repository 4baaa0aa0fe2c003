#include "comm/selection.h"

#include <gtest/gtest.h>

namespace diapason::comm {
namespace {

BackendInfo Usable(const std::string& name, const std::string& version = "1") {
  return {name, true, version, "devices", ""};
}
BackendInfo Unusable(const std::string& name, const std::string& reason) {
  return {name, false, "", "", reason};
}
Findings Of(std::vector<BackendInfo> backends, const std::string& wanted = "auto") {
  return {"host", wanted, std::move(backends)};
}

TEST(Selection, TheFirstThatWorksOnEveryRank) {
  const Result<SelectedBackend> chosen =
      Choose({Of({Unusable("nccl", "no driver"), Usable("gloo"), Usable("mpi")}),
              Of({Usable("nccl"), Usable("gloo"), Usable("mpi")})});
  ASSERT_TRUE(chosen.ok());
  EXPECT_EQ(chosen.value().backend, "gloo");
  EXPECT_EQ(chosen.value().description, "gloo 1, devices; not nccl: no driver");
}

TEST(Selection, AnotherRanksReasonNamesTheRank) {
  const Result<SelectedBackend> chosen = Choose(
      {Of({Usable("nccl"), Usable("gloo")}), Of({Unusable("nccl", "no GPU"), Usable("gloo")})});
  ASSERT_TRUE(chosen.ok());
  EXPECT_EQ(chosen.value().backend, "gloo");
  EXPECT_NE(chosen.value().description.find("not nccl: on rank 1 no GPU"), std::string::npos);
}

TEST(Selection, DifferentVersionsDoNotMix) {
  const Result<SelectedBackend> chosen = Choose({Of({Usable("nccl", "2.28.9"), Usable("gloo")}),
                                                 Of({Usable("nccl", "2.19.3"), Usable("gloo")})});
  ASSERT_TRUE(chosen.ok());
  EXPECT_EQ(chosen.value().backend, "gloo");
  EXPECT_NE(chosen.value().description.find("rank 1 has version 2.19.3 and rank 0 2.28.9"),
            std::string::npos);
}

TEST(Selection, WhatWasNamedIsNeverReplaced) {
  const Result<SelectedBackend> chosen = Choose({Of({Unusable("nccl", "no driver")}, "nccl")});
  ASSERT_FALSE(chosen.ok());
  EXPECT_EQ(chosen.status().code(), ErrorCode::kUnavailable);
  EXPECT_NE(chosen.status().message().find("nccl: no driver"), std::string::npos);
}

TEST(Selection, RanksMustAskForTheSame) {
  const Result<SelectedBackend> chosen =
      Choose({Of({Usable("gloo")}, "gloo"), Of({Usable("nccl")}, "nccl")});
  ASSERT_FALSE(chosen.ok());
  EXPECT_NE(chosen.status().message().find("rank 1 asks for the backend nccl and rank 0 for gloo"),
            std::string::npos);
}

TEST(Selection, NothingWorks) {
  const Result<SelectedBackend> chosen =
      Choose({Of({Unusable("nccl", "no driver"), Unusable("gloo", "not built")})});
  ASSERT_FALSE(chosen.ok());
  EXPECT_NE(chosen.status().message().find("nccl: no driver; gloo: not built"), std::string::npos);
}

TEST(Selection, FindingsTravel) {
  const Findings sent = Of({Usable("nccl", "2.28.9"), Unusable("gloo", "why; not")}, "auto");
  const Result<Findings> got = Findings::Decode(sent.Encode());
  ASSERT_TRUE(got.ok());
  EXPECT_EQ(got.value().host, "host");
  ASSERT_EQ(got.value().backends.size(), 2U);
  EXPECT_EQ(got.value().backends[0].version, "2.28.9");
  EXPECT_TRUE(got.value().backends[0].usable);
  EXPECT_EQ(got.value().backends[1].reason, "why; not");
  const std::string whole = sent.Encode();
  for (size_t length = 0; length < whole.size(); ++length) {
    EXPECT_FALSE(Findings::Decode(whole.substr(0, length)).ok());
  }
}

TEST(Selection, AnUnknownBackendGetsASuggestion) {
  const Result<Backend*> backend = FindBackend("glou");
  ASSERT_FALSE(backend.ok());
  EXPECT_NE(backend.status().message().find("did you mean 'gloo'"), std::string::npos);
}

}  // namespace
}  // namespace diapason::comm
