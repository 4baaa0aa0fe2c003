#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/commands/tune/tune.h"

namespace diapason::cli {
namespace {

TEST(TuneJson, NamesTheFileOfTheLibrary) {
  TuneOptions options;
  options.job = {Library::kNccl, "/env/libnccl.so.2",     22809, "PyTorch 2.11.0 loads it",
                 false,          "/usr/lib/libnccl.so.2", 22803};
  tune::TuneOutcome outcome;
  outcome.subject.library = Library::kNccl;
  const auto json = nlohmann::json::parse(TuneJson(options, outcome, {}, {}));
  EXPECT_EQ(json["library_file"], "/env/libnccl.so.2");
  EXPECT_EQ(json["library_file_because"],
            "PyTorch 2.11.0 loads it; a program gets 2.28.3, /usr/lib/libnccl.so.2");
  // Another library, or a simulated one, is in no such file.
  outcome.subject.simulated = true;
  EXPECT_FALSE(nlohmann::json::parse(TuneJson(options, outcome, {}, {})).contains("library_file"));
  outcome.subject.simulated = false;
  outcome.subject.library = Library::kGloo;
  EXPECT_FALSE(nlohmann::json::parse(TuneJson(options, outcome, {}, {})).contains("library_file"));
}

}  // namespace
}  // namespace diapason::cli
