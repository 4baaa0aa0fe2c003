#include "cell_server/cell_table.h"

#include "agree/private_folder.h"
#include "rendezvous/frame.h"

namespace diapason::cell_server {
namespace {

using rendezvous::FrameReader;

enum class RecordKind : uint8_t { kJob, kCell, kMember, kLeft, kForget, kRemove };

// About what the containers take beside the texts.
constexpr size_t kJobBytes = 512;
constexpr size_t kCellOverhead = 112;
constexpr size_t kMemberBytes = 48;

// Records have the form of a frame's body. (The frame's own head is cut off.)
class RecordWriter {
 public:
  explicit RecordWriter(RecordKind kind) { Number(static_cast<uint64_t>(kind)); }
  RecordWriter& Number(uint64_t number) {
    writer_.Number(number);
    return *this;
  }
  RecordWriter& Text(std::string_view text) {
    writer_.Text(text);
    return *this;
  }
  std::string Take() { return rendezvous::BodyOf(writer_.Take()); }

 private:
  rendezvous::FrameWriter writer_{rendezvous::FrameKind::kCells};
};

Status BadRecord() { return Unavailable("a record of it makes no sense"); }

}  // namespace

std::string JobRecord(std::string_view job, std::string_view nonce, uint64_t writes) {
  return RecordWriter(RecordKind::kJob).Text(job).Text(nonce).Number(writes).Take();
}
std::string CellRecord(std::string_view job, std::string_view key, std::string_view value) {
  return RecordWriter(RecordKind::kCell).Text(job).Text(key).Text(value).Take();
}
std::string MemberRecord(std::string_view job, uint64_t client) {
  return RecordWriter(RecordKind::kMember).Text(job).Number(client).Take();
}
std::string LeftRecord(std::string_view job, uint64_t client) {
  return RecordWriter(RecordKind::kLeft).Text(job).Number(client).Take();
}
std::string ForgetRecord(std::string_view job, std::string_view prefix) {
  return RecordWriter(RecordKind::kForget).Text(job).Text(prefix).Take();
}
std::string RemoveRecord(std::string_view job) {
  return RecordWriter(RecordKind::kRemove).Text(job).Take();
}

CellJob* CellTable::Find(std::string_view job) {
  const auto found = jobs_.find(job);
  return found == jobs_.end() ? nullptr : &found->second;
}

size_t CellTable::CellBytes(std::string_view key, std::string_view value) {
  return key.size() + value.size() + kCellOverhead;
}

void CellTable::RemoveCells(CellJob* job, std::string_view prefix) {
  auto cell = job->cells.lower_bound(prefix);
  while (cell != job->cells.end() && std::string_view(cell->first).starts_with(prefix)) {
    bytes_ -= CellBytes(cell->first, cell->second);
    cell = job->cells.erase(cell);
  }
}

Status CellTable::Apply(std::string_view record) {
  FrameReader reader(record);
  const uint64_t kind = reader.Number();
  const std::string name(reader.Text());
  if (!reader.ok() || !agree::CheckJob(name).ok()) return BadRecord();
  CellJob* const job = Find(name);
  if ((job == nullptr) != (kind == static_cast<uint64_t>(RecordKind::kJob))) return BadRecord();
  switch (static_cast<RecordKind>(kind)) {
    case RecordKind::kJob: {
      CellJob fresh;
      fresh.nonce = reader.Text();
      fresh.writes = reader.Number();
      fresh.used = std::chrono::steady_clock::now();
      if (!reader.ok() || !agree::CheckKey(fresh.nonce).ok()) return BadRecord();
      jobs_.emplace(name, std::move(fresh));
      bytes_ += kJobBytes;
      return {};
    }
    case RecordKind::kCell: {
      const std::string key(reader.Text());
      const std::string_view value = reader.Text();
      if (!reader.ok() || !agree::CheckKey(key).ok() || !agree::CheckValue(value).ok() ||
          !job->cells.emplace(key, value).second) {
        return BadRecord();
      }
      bytes_ += CellBytes(key, value);
      ++job->writes;
      return {};
    }
    case RecordKind::kMember:
    case RecordKind::kLeft: {
      const bool comes = kind == static_cast<uint64_t>(RecordKind::kMember);
      const uint64_t client = reader.Number();
      if (!reader.ok()) return BadRecord();
      if (comes) bytes_ += job->members.insert(client).second ? kMemberBytes : 0;
      if (!comes) bytes_ -= job->members.erase(client) * kMemberBytes;
      job->left = job->left || !comes;
      return {};
    }
    case RecordKind::kForget: {
      const std::string_view prefix = reader.Text();
      if (!reader.ok()) return BadRecord();
      RemoveCells(job, prefix);
      return {};
    }
    case RecordKind::kRemove:
      RemoveCells(job, "");
      bytes_ -= kJobBytes + job->members.size() * kMemberBytes;
      jobs_.erase(name);
      return {};
  }
  return BadRecord();
}

void CellTable::Snapshot(const std::function<void(std::string_view)>& add) const {
  for (const auto& [name, job] : jobs_) {
    // Each cell that follows counts as a write.
    add(JobRecord(name, job.nonce, job.writes - job.cells.size()));
    for (const auto& [key, value] : job.cells) add(CellRecord(name, key, value));
    for (const uint64_t client : job.members) add(MemberRecord(name, client));
  }
}

}  // namespace diapason::cell_server
