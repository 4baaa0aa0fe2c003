// What is asked of a job once it is prepared.
#include <algorithm>
#include <filesystem>

#include "base/text.h"
#include "job/prepare.h"

namespace diapason::job {

std::string_view JobModeName(JobMode mode) {
  switch (mode) {
    case JobMode::kLearn:
      return "learn";
    case JobMode::kCompare:
      return "compare";
    case JobMode::kObserve:
      return "observe";
    case JobMode::kTune:
      return "tune";
    case JobMode::kStatic:
      break;
  }
  return "static";
}

std::vector<std::string> PreparedJob::Journals() const {
  std::vector<std::string> files;
  std::error_code error;
  for (std::filesystem::directory_iterator at(journal_dir, error), end; !error && at != end;
       at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (name.starts_with(journal_stem)) files.push_back(at->path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::string PreparedJob::Variable(const std::string& name) const {
  for (const RankVariable& one : variables) {
    if (one.name == name) return one.value;
  }
  return "";
}

std::map<int, std::string> EvidenceIn(const std::string& text) {
  std::map<int, std::string> evidence;
  std::string remark;
  int number = 0;
  for (const std::string_view line : Split(text, '\n')) {
    ++number;
    const std::string_view trimmed = Trim(line);
    if (trimmed.empty()) continue;
    if (trimmed[0] != '#') {
      if (!remark.empty()) evidence[number] = remark;
      remark.clear();
      continue;
    }
    const std::string_view said = Trim(trimmed.substr(1));
    if (said.starts_with("verified:") || said.starts_with("learned:")) remark = std::string(said);
  }
  return evidence;
}

}  // namespace diapason::job
