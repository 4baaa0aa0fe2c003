#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "measure/iteration.h"

namespace diapason::measure {
namespace {

TEST(Spec, EveryPresetSurvivesTheWire) {
  for (const std::string& name : PresetNames()) {
    for (const bool host : {false, true}) {
      Result<IterationSpec> made = PresetSpec(name, {.parts = 3, .bytes = 0, .host = host});
      ASSERT_TRUE(made.ok()) << made.status().message();
      IterationSpec spec = made.value();
      EXPECT_EQ(spec.preset, name);
      spec.compute = 0.1 + 0.2;  // no short decimal
      spec.overlap = host;
      spec.type = DataType::kBf16;
      spec.buckets[1].config = {2, -1, 17, 1 << 20};
      const std::string text = EncodeSpec(spec);
      EXPECT_EQ(text.find('\n'), std::string::npos);
      const Result<IterationSpec> back = DecodeSpec(text);
      ASSERT_TRUE(back.ok()) << back.status().message();
      EXPECT_EQ(back.value(), spec);
    }
  }
}

TEST(Spec, PresetsAreWhatTheirNamesSay) {
  const IterationSpec ddp = PresetSpec("ddp", {.parts = 2}).value();
  ASSERT_EQ(ddp.buckets.size(), 2U);
  EXPECT_EQ(ddp.buckets[0], (Bucket{Operation::kAllReduce, 25 << 20, 0, 4, 6, {}}));
  EXPECT_EQ(ddp.buckets[1], (Bucket{Operation::kAllReduce, 25 << 20, 0, 6, 6, {}}));

  const IterationSpec fsdp = PresetSpec("FSDP", {.parts = 3, .bytes = 4096}).value();
  std::vector<int> gathers;
  std::vector<int> scatters;
  for (const Bucket& bucket : fsdp.buckets) {
    EXPECT_EQ(bucket.bytes, 4096U);
    (bucket.operation == Operation::kAllGather ? gathers : scatters).push_back(bucket.after);
  }
  EXPECT_EQ(gathers, (std::vector<int>{0, 0, 1, 3, 5}));
  EXPECT_EQ(scatters, (std::vector<int>{5, 7, 9}));

  const IterationSpec tp = PresetSpec("tp", {.parts = 2}).value();
  EXPECT_EQ(tp.buckets.size(), 4U);
  for (const Bucket& bucket : tp.buckets) EXPECT_EQ(bucket.after, bucket.before);
  const IterationSpec moe = PresetSpec("moe", {}).value();
  EXPECT_EQ(moe.communicators, 2);
  for (const Bucket& bucket : moe.buckets) {
    EXPECT_EQ(bucket.communicator, bucket.operation == Operation::kAllToAll ? 0 : 1);
  }
}

TEST(Spec, UnknownPresetsAndBadNumbersAreRefused) {
  EXPECT_EQ(PresetSpec("dpp", {}).status().message(), "unknown preset 'dpp'; did you mean 'ddp'?");
  EXPECT_FALSE(PresetSpec("", {}).ok());
  EXPECT_FALSE(PresetSpec("ddp", {.parts = -1}).ok());
  EXPECT_FALSE(PresetSpec("ddp", {.parts = 5000}).ok());
  EXPECT_FALSE(PresetSpec("ddp", {.parts = 4, .bytes = uint64_t{1} << 62}).ok());
  EXPECT_FALSE(PresetSpec("ddp", {.parts = 1000, .bytes = uint64_t{1} << 39}).ok());

  const IterationSpec fine = PresetSpec("ddp", {}).value();
  const auto refused = [&](const std::function<void(IterationSpec*)>& change) {
    IterationSpec spec = fine;
    change(&spec);
    return !CheckSpec(spec).ok();
  };
  EXPECT_FALSE(refused([](IterationSpec*) {}));
  EXPECT_TRUE(refused([](IterationSpec* s) { s->steps = 0; }));
  EXPECT_TRUE(refused([](IterationSpec* s) { s->warmups = -1; }));
  EXPECT_TRUE(refused([](IterationSpec* s) { s->compute = -1e-9; }));
  EXPECT_TRUE(refused([](IterationSpec* s) { s->compute = std::nan(""); }));
  EXPECT_TRUE(refused([](IterationSpec* s) { s->chunks = 0; }));
  EXPECT_TRUE(refused([](IterationSpec* s) { s->chunks = 3; }));  // buckets begin later
  EXPECT_TRUE(refused([](IterationSpec* s) { s->buckets.clear(); }));
  EXPECT_TRUE(refused([](IterationSpec* s) { s->communicators = 9; }));
  EXPECT_TRUE(refused([](IterationSpec* s) { s->threads = 0; }));
  EXPECT_TRUE(refused([](IterationSpec* s) { s->limit = 0; }));
  EXPECT_TRUE(refused([](IterationSpec* s) { s->compute = 40; }));  // of a limit of 60
  EXPECT_TRUE(refused([](IterationSpec* s) { s->preset = "a b"; }));
  EXPECT_TRUE(refused([](IterationSpec* s) { s->buckets[0].communicator = 1; }));
  EXPECT_TRUE(refused([](IterationSpec* s) { s->buckets[0].bytes = 3; }));
  EXPECT_TRUE(refused([](IterationSpec* s) { s->buckets[0].before = 1; }));
  EXPECT_TRUE(refused([](IterationSpec* s) { s->buckets[0].operation = Operation::kSend; }));
  EXPECT_TRUE(refused([](IterationSpec* s) { s->buckets[0].operation = Operation::kBroadcast; }));
}

TEST(Spec, HostileTextIsRefused) {
  const std::string fine = EncodeSpec(PresetSpec("tp", {.parts = 1, .bytes = 4096}).value());
  ASSERT_TRUE(DecodeSpec(fine).ok());
  for (size_t length = 0; length < fine.size(); ++length) {
    EXPECT_FALSE(DecodeSpec(fine.substr(0, length)).ok()) << fine.substr(0, length);
  }
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = fine;
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return DecodeSpec(text.replace(at, from.size(), to)).ok();
  };
  EXPECT_TRUE(with("steps=20", "steps=21"));
  EXPECT_FALSE(with("steps=20", "steps=99999999999999999999"));
  EXPECT_FALSE(with("steps=20", "steps=4294967297"));
  EXPECT_FALSE(with("steps=20", "steps=-1"));
  EXPECT_FALSE(with("steps=20", "steps=20 steps=20"));
  EXPECT_FALSE(with("overlap=1", "overlap=2"));
  EXPECT_FALSE(with("limit=60", "limit=inf"));
  EXPECT_FALSE(with("limit=60", "limit=nan"));
  EXPECT_FALSE(with("limit=60", "limit=60x"));
  EXPECT_FALSE(with("type=f32", "type=f31"));
  EXPECT_FALSE(with("all_reduce:", "allreduce_x:"));
  EXPECT_FALSE(with(":4096:", ":-4096:"));
  EXPECT_FALSE(with(":4096:", ":18446744073709551615:"));
  EXPECT_FALSE(with(":4096:", ":4096:0:"));
  EXPECT_FALSE(with("preset=tp", "preset=../../etc"));
  EXPECT_FALSE(with("iteration ", "Iteration "));
  EXPECT_FALSE(DecodeSpec(fine + " more=1").ok());
  EXPECT_FALSE(DecodeSpec(fine + "\n").ok());
  EXPECT_FALSE(DecodeSpec(std::string(4 << 20, ',')).ok());
  EXPECT_FALSE(with(" end", std::string(5000, ',') + " end"));
  EXPECT_FALSE(DecodeSpec("iteration end").ok());
  EXPECT_FALSE(DecodeSpec("iteration  end").ok());
  EXPECT_FALSE(DecodeSpec(std::string("iteration preset=\0", 18)).ok());
}

}  // namespace
}  // namespace diapason::measure
