#include "watch/journal_tail.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/file.h"
#include "base/text.h"
#include "domain/schedule.h"
#include "journal/joined.h"
#include "journal/writer.h"

namespace diapason::watch {
namespace {

using journal::JournalRecord;
using journal::RecordKind;

constexpr uint64_t kInFull = uint64_t{4} << 20;      // of one poll
constexpr uint64_t kMostRead = uint64_t{512} << 20;  // the next poll goes on
constexpr size_t kBlock = 256 * 1024;
constexpr size_t kLongestLine = 64 * 1024;
constexpr size_t kMostCommunicators = 4096;
constexpr size_t kMostContexts = 4096;
constexpr size_t kMostRewards = 4096;

// The pid in its own namespace, which the plugin sees.
std::string InnerPid(const RootFs& tree, pid_t pid) {
  const std::string outer = Format("{}", static_cast<int>(pid));
  const std::optional<std::string> status = tree.Read("/proc/" + outer + "/status");
  if (!status) return outer;
  for (const std::string_view line : Split(*status, '\n')) {
    if (!line.starts_with("NSpid:")) continue;
    const size_t last = line.find_last_of(" \t");
    return std::string(Trim(line.substr(last)));
  }
  return outer;
}

bool StartsWithType(std::string_view line, std::string_view type) {
  constexpr std::string_view kStart = "{\"type\":\"";
  return line.starts_with(kStart) && line.substr(kStart.size()).starts_with(type) &&
         line.substr(kStart.size() + type.size()).starts_with("\"");
}

bool CommunicatorNumber(std::string_view line, uint32_t* number) {
  constexpr std::string_view kStart = "{\"type\":\"communicator\",\"comm\":";
  if (!line.starts_with(kStart)) return false;
  line.remove_prefix(kStart.size());
  uint64_t value = 0;
  if (!ParseUnsigned(line.substr(0, line.find(',')), &value) || value > UINT32_MAX) return false;
  *number = static_cast<uint32_t>(value);
  return true;
}

}  // namespace

std::string JournalOf(const RootFs& tree, pid_t pid, const Environment& environment) {
  const std::optional<std::string> pattern = environment.Get("DIAPASON_JOURNAL");
  if (!pattern || pattern->empty()) return "";
  const std::string inner = InnerPid(tree, pid);
  std::string path = journal::ExpandPath(*pattern, inner);
  const std::string folder = Format("/proc/{}", static_cast<int>(pid));
  if (path[0] != '/') path = tree.Link(folder + "/cwd").value_or("") + "/" + path;
  const std::string own = path + "." + inner;
  // The file it has open decides which of the two it is.
  for (const std::string& fd : tree.List(folder + "/fd")) {
    const std::string target = tree.Link(folder + "/fd/" + fd).value_or("");
    if (target == path || target == own) {
      // In a container it may have no name here; the descriptor always works.
      return tree.Exists(target) ? tree.Place(target) : tree.Place(folder + "/fd/" + fd);
    }
  }
  return tree.Place(tree.Exists(own) ? own : path);
}

void JournalTail::Forget() {
  const uint64_t restarts = counts_.restarts;
  counts_ = Counts();
  counts_.restarts = restarts;
  offset_ = 0;
  rest_.clear();
  skipping_line_ = false;
  first_line_ = true;
  head_.clear();
  pending_.clear();
  communicator_lines_.clear();
  communicators_.clear();
  contexts_.clear();
  settled_.clear();
  trying_.clear();
  rewards_.clear();
}

bool JournalTail::Reopen() {
  if (fd_.open()) ++counts_.restarts;
  Forget();
  fd_ = Descriptor(open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat about {};
  if (!fd_.open()) {
    problem_ = "cannot open '" + path_ + "': " + ErrnoText(errno);
    return false;
  }
  if (fstat(fd_.get(), &about) != 0 || !S_ISREG(about.st_mode)) {
    problem_ = "'" + path_ + "' is not a regular file";
    fd_.Close();
    return false;
  }
  device_ = about.st_dev;
  inode_ = about.st_ino;
  return true;
}

bool JournalTail::Poll() {
  struct stat about {};
  const bool there = stat(path_.c_str(), &about) == 0;
  const bool same = fd_.open() && there && about.st_dev == device_ && about.st_ino == inode_ &&
                    static_cast<uint64_t>(about.st_size) >= offset_;
  // A removed file that is still open counts.
  if (!same && (!fd_.open() || there) && !Reopen()) return false;
  if (fstat(fd_.get(), &about) != 0) return false;
  problem_.clear();
  const uint64_t size = std::min(static_cast<uint64_t>(about.st_size), offset_ + kMostRead);
  const uint64_t in_full_from = size - std::min(size - std::min(size, offset_), kInFull);
  std::string block(kBlock, '\0');
  while (offset_ < size) {
    const ssize_t got = pread(fd_.get(), block.data(), std::min<uint64_t>(kBlock, size - offset_),
                              static_cast<off_t>(offset_));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    offset_ += static_cast<uint64_t>(got);
    Block(std::string_view(block).substr(0, static_cast<size_t>(got)), offset_ > in_full_from);
  }
  TakePending();
  if (head_.empty()) {
    problem_ = first_line_ ? "'" + path_ + "' is empty so far" : "'" + path_ + "' is not a journal";
    return false;
  }
  return true;
}

void JournalTail::Block(std::string_view text, bool in_full) {
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const std::string_view part = text.substr(0, end);
    if (!skipping_line_) rest_.append(part);
    if (rest_.size() > kLongestLine) {
      skipping_line_ = true;
      rest_.clear();
      ++counts_.unknown;
    }
    if (end == std::string_view::npos) return;
    if (!skipping_line_) Line(rest_, in_full);
    rest_.clear();
    skipping_line_ = false;
    text.remove_prefix(end + 1);
  }
}

void JournalTail::Line(std::string_view line, bool in_full) {
  if (Trim(line).empty()) return;
  if (first_line_) {
    first_line_ = false;
    if (const auto read = journal::ParseJournal(line, path_); read.ok()) head_ = line;
    return;
  }
  if (head_.empty()) return;  // not a journal: its contents are not used
  if (StartsWithType(line, "decision")) {
    ++counts_.decisions;
  } else if (StartsWithType(line, "run")) {
    ++counts_.runs;
  } else if (StartsWithType(line, "bypassed")) {
    ++counts_.bypassed;
  } else if (StartsWithType(line, "reward")) {
    ++counts_.rewards;
  } else if (StartsWithType(line, "communicator")) {
    TakeCommunicator(line);
    return;
  } else if (StartsWithType(line, "step")) {
    return;
  } else if (!StartsWithType(line, "dropped") && !StartsWithType(line, "end")) {
    ++counts_.unknown;
    return;
  } else {
    in_full = true;
  }
  if (in_full) pending_.append(line).append("\n");
}

void JournalTail::TakeCommunicator(std::string_view line) {
  uint32_t number = 0;
  const auto read = journal::ParseJournal(head_ + "\n" + std::string(line), path_);
  if (!read.ok() || read.value().communicators.size() != 1 || !CommunicatorNumber(line, &number) ||
      (communicator_lines_.size() >= kMostCommunicators &&
       communicator_lines_.count(number) == 0)) {
    ++counts_.unknown;
    return;
  }
  communicator_lines_[number] = line;
  communicators_[number] = read.value().communicators[0];
}

void JournalTail::TakePending() {
  if (pending_.empty()) return;
  std::string text = head_ + "\n";
  for (const auto& [number, line] : communicator_lines_) text += line + "\n";
  text += pending_;
  pending_.clear();
  const auto read = journal::ParseJournal(text, path_);
  if (!read.ok()) return;
  counts_.unknown += read.value().bad_lines;
  counts_.dropped = std::max(counts_.dropped, read.value().dropped);
  counts_.ended |= read.value().ended;
  for (const JournalRecord& record : read.value().records) {
    TakeRecord(record, read.value().Find(record.communicator)->library);
  }
}

void JournalTail::TakeRecord(const JournalRecord& record, Library library) {
  const Key key{record.communicator, record.collective, SizeBand(record.bytes)};
  if (record.kind == RecordKind::kReward) {
    if (rewards_.size() == kMostRewards) rewards_.pop_front();
    rewards_.push_back(record);
    return;
  }
  if (contexts_.size() >= kMostContexts && contexts_.count(key) == 0) return;
  Context& context = contexts_[key];
  const auto collective = static_cast<Collective>(record.collective);
  context.communicator = record.communicator;
  context.collective = record.collective == journal::kNamelessCollective
                           ? "?"
                           : std::string(CollectiveName(collective));
  context.bytes = record.bytes;
  switch (record.kind) {
    case RecordKind::kDecision:
      ++context.calls;
      context.asked = ConfigText(library, collective, journal::AskedOf(record));
      context.why = ReasonSentence(record.reason);
      if (record.learning) {
        const bool tried = record.reason == Reason::kTrying || record.reason == Reason::kWarmUp;
        (tried ? trying_ : settled_)[key] = record;
      }
      break;
    case RecordKind::kRan:
      context.ran = record.algorithm == kKeep && record.protocol == kKeep
                        ? "nameless"
                        : ConfigText(library, collective, journal::ConfigOf(record));
      if (record.seconds > 0) context.seconds = record.seconds;
      break;
    case RecordKind::kBypassed:
      ++context.calls;
      context.asked = "-";
      context.ran = "bypassed";
      context.why = "the library did not ask the tuner";
      break;
    case RecordKind::kReward:
    case RecordKind::kStep:
      break;
  }
}

std::vector<JournalTail::Context> JournalTail::Contexts() const {
  std::vector<Context> list;
  for (const auto& [key, context] : contexts_) list.push_back(context);
  std::stable_sort(list.begin(), list.end(),
                   [](const Context& a, const Context& b) { return a.calls > b.calls; });
  return list;
}

std::vector<journal::JournalContext> JournalTail::Learning() const {
  journal::JournalContents contents;
  for (const auto& [number, communicator] : communicators_) {
    contents.by_number[number] = contents.communicators.size();
    contents.communicators.push_back(communicator);
  }
  for (const JournalRecord& record : rewards_) contents.records.push_back(record);
  for (const auto* decisions : {&settled_, &trying_}) {
    for (const auto& [key, record] : *decisions) contents.records.push_back(record);
  }
  return journal::LearningOf(contents);
}

Library JournalTail::LibraryOf(uint32_t communicator) const {
  const auto found = communicators_.find(communicator);
  return found == communicators_.end() ? Library::kNccl : found->second.library;
}

}  // namespace diapason::watch
