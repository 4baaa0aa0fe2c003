#include "launch/program.h"

#include <cstdio>

#include "launch/launcher.h"

namespace diapason::launch {
namespace {

constexpr size_t kErrorLines = 12;
constexpr std::chrono::minutes kWriteLimit{1};
constexpr size_t kMostPending = size_t{64} << 20;

}  // namespace

Result<std::unique_ptr<Program>> Program::Start(
    const std::vector<std::string>& command,
    const std::vector<std::pair<std::string, std::string>>& environment, bool show_errors) {
  std::unique_ptr<Program> program(new Program());
  process::ChildOptions options;
  options.command = command;
  for (const auto& [name, value] : environment) {
    options.environment[name] = value.empty() ? std::nullopt : std::optional(value);
  }
  options.input = true;
  options.out = [to = &program->text_](std::string_view text) { to->append(text); };
  program->show_errors_ = show_errors;
  options.err = [to = program.get()](std::string_view text) {
    to->errors_.Add(text);
    if (to->show_errors_) std::fwrite(text.data(), 1, text.size(), stderr);
  };
  ASSIGN_OR_RETURN(program->child_, process::Child::Start(std::move(options)));
  return program;
}

Status Program::WriteLine(const std::string& line) {
  return child_->Write(line + "\n", std::chrono::steady_clock::now() + kWriteLimit);
}

Result<std::string> Program::ReadLine(Deadline deadline) {
  while (true) {
    const size_t end = text_.find('\n');
    if (end != std::string::npos) {
      std::string line = text_.substr(0, end);
      text_.erase(0, end + 1);
      return line;
    }
    if (text_.size() > kMostPending) return Invalid("the program writes a line without an end");
    if (!child_->out_open()) return PeerLost("the program has ended");
    if (!child_->Poll(deadline)) return TimedOut("the program has not answered");
  }
}

Result<std::string> Program::ReadAll(size_t most, Deadline deadline) {
  while (child_->out_open()) {
    if (text_.size() > most) return Invalid("the program writes too much");
    if (!child_->Poll(deadline)) return TimedOut("the program has not ended");
  }
  return std::move(text_);
}

Result<int> Program::Finish(Deadline deadline) {
  child_->CloseInput();
  if (!child_->Wait(deadline)) return TimedOut("the program does not end");
  return child_->status();
}

std::string Program::ErrorTail() {
  child_->Drain();
  const std::string cause = CauseOfFailure(errors_.Text());
  return cause.empty() ? errors_.Tail(kErrorLines) : cause;
}

}  // namespace diapason::launch
