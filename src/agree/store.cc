#include "agree/store.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "agree/private_folder.h"
#include "agree/stores.h"

namespace diapason::agree {

bool Retryable(const Status& status) {
  return !status.ok() && (status.code() == ErrorCode::kIo || status.code() == ErrorCode::kTimeout);
}

bool NoRoom(const Status& status) { return !status.ok() && status.code() == ErrorCode::kNoRoom; }

Result<std::vector<std::optional<std::string>>> CellStore::ReadMany(
    const std::vector<std::string>& keys, Deadline deadline) {
  std::vector<std::optional<std::string>> values;
  values.reserve(keys.size());
  for (const std::string& key : keys) {
    ASSIGN_OR_RETURN(std::optional<std::string> value, Read(key, deadline));
    values.push_back(std::move(value));
  }
  return values;
}

Result<std::unique_ptr<CellStore>> OpenStore(const StoreOptions& options) {
  RETURN_IF_ERROR(CheckJob(options.job));
  const std::string& where = options.where;
  const auto begins = [&where](std::string_view start) {
    return where.compare(0, start.size(), start) == 0;
  };
  if (where == "shm") return OpenShmStore(options, {});
  if (begins("file:")) return OpenFileStore(options, where.substr(5));
  if (begins("tcp://")) return OpenTcpStore(options, where);
  if (begins("redis://")) return OpenRedisStore(options, where);
  if (begins("rediss://")) {
    return Unavailable(
        "a store at rediss:// would need TLS, which is not built in: let a proxy on "
        "this host do it (stunnel, for one), and use redis://localhost:PORT");
  }
  // Not the whole text: it may contain a password.
  return Invalid(
      Format("unknown store '{}'; known are shm, file:/a/folder, tcp://host:port and "
             "redis://host:port",
             where.substr(0, where.find(':'))));
}

namespace {

// The folder of this user's jobs; "" if the store has none.
std::string FolderOfJobs(const std::string& where) {
  std::string root;
  if (where == "shm") root = ShmOptions().root;
  if (where.compare(0, 5, "file:") == 0) root = where.substr(5);
  if (root.empty()) return root;
  return root + Format("/diapason-{}", static_cast<unsigned>(::geteuid()));
}

}  // namespace

void RemoveJob(const std::string& where, const std::string& job) {
  const std::string folder = FolderOfJobs(where);
  std::error_code ignored;
  // A symbolic link in place of the folder was not made by a store.
  if (folder.empty() || !CheckJob(job).ok() ||
      !std::filesystem::is_directory(std::filesystem::symlink_status(folder, ignored))) {
    return;
  }
  std::filesystem::remove_all(std::filesystem::path(folder) / job, ignored);
}

std::vector<std::string> JobsIn(const std::string& where) {
  constexpr size_t kMostJobs = 100;
  const std::string folder = FolderOfJobs(where);
  std::vector<std::string> jobs;
  if (folder.empty()) return jobs;
  std::error_code error;
  std::filesystem::directory_iterator entries(folder, error);
  for (; !error && entries != std::filesystem::directory_iterator() && jobs.size() < kMostJobs;
       entries.increment(error)) {
    const std::string name = entries->path().filename().string();
    if (CheckJob(name).ok()) jobs.push_back(name);
  }
  std::sort(jobs.begin(), jobs.end());
  return jobs;
}

}  // namespace diapason::agree
