#pragma once

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "env_tune/binding.h"
#include "env_tune/experiment.h"

namespace diapason::env_tune {

// A tuning on disk, so that it can be gone on with: JSON lines, the first says what is tuned and
// how, then one a run, written as it ends. A last line that was cut short is as if it were not
// there.
struct StateHead {
  std::string fingerprint;           // of the command and of every option that changes a step
  std::vector<std::string> command;  // for people
  Binding binding;
  std::vector<KnobValue> candidates;
};

struct StateRun {
  Step step;
  RunFigure figure;
};

struct TuneState {
  StateHead head;
  std::vector<StateRun> runs;
  size_t good_bytes = 0;  // up to the end of the last whole line
};

// kNotFound when there is no such file.
Result<TuneState> ReadState(const std::string& path);
Result<TuneState> ParseState(std::string_view text,
                             const std::string& name);  // the same, of a text

class StateWriter {
 public:
  // A new file; one that is there already is not overwritten.
  static Result<StateWriter> Create(const std::string& path, const StateHead& head);
  // Goes on behind what was read.
  static Result<StateWriter> Continue(const std::string& path, const TuneState& state);
  // On disk when it returns, as far as the kernel is concerned.
  Status Add(const StateRun& run);

 private:
  struct Closer {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  explicit StateWriter(std::FILE* file, std::string path) : file_(file), path_(std::move(path)) {}
  Status Write(const std::string& line);
  std::unique_ptr<std::FILE, Closer> file_;
  std::string path_;
};

}  // namespace diapason::env_tune
