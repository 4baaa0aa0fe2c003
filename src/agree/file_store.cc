// Ranks that share a file system agree in a folder there: <folder>/diapason-<user>/<job>/. A cell
// is a file. It is completed under a temporary name, and link() gives it the cell's name, which
// succeeds for one process only. NFS may report failure for a link() that succeeded (the reply was
// lost and the request repeated), so the result of link() is ignored: the file that can be read
// under the name stands.
//
// A user may empty the folder while ranks use it, and `rm -r` removes one file after the other. A
// rank that misses a cell which another rank has used would take it for empty and propose again. So
// every cell exists twice, in the folders 1 and 2, and both hold the store's nonce. `rm -r` and
// similar tools finish one folder before they begin another: if a cell is gone from both, one of
// the nonces is gone too. So a value counts once it is in both folders and both nonces are found to
// exist afterwards. This cannot detect the removal of single cells from both folders that leaves
// the nonces.
//
// The nonce is part of every cell's name, so that cells of a folder that was emptied and refilled
// are never mistaken for this store's. The folders stay open: renaming them does no harm.
//
// The folder is removed with the job: see JobFolder.
//
// Waits for a file system that does not answer are not bounded; a hard-mounted one whose server is
// gone blocks its users for ever.
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <ctime>

#include "agree/folder_names.h"
#include "agree/job_folder.h"
#include "agree/private_folder.h"
#include "agree/quiet_signal.h"
#include "agree/stores.h"
#include "base/encoding.h"
#include "base/file.h"

namespace diapason::agree {
namespace {

constexpr char kNonce[] = "nonce";
constexpr char kTemporary[] = ".new-";
constexpr char kMagic[] = "diapason-cell";
constexpr size_t kLongestHead = 64;
constexpr int kMostSwept = 256;
constexpr time_t kOldSeconds = 3600;
constexpr int kMostForgotten = 100000;

using CellValue = std::optional<std::string>;

std::string CellText(std::string_view value) {
  return Format("{} {} {:016x}\n", kMagic, value.size(), Fnv1a64(value)) + std::string(value);
}

Result<std::string> ParseCell(std::string text) {
  const size_t end = text.find('\n');
  if (end != std::string::npos && end < kLongestHead) {
    std::string value = text.substr(end + 1);
    if (CellText(value) == text) return value;
  }
  return Unavailable("it holds what no rank has written");
}

class FileStore : public CellStore {
 public:
  FileStore(const StoreOptions& options, std::string path, std::unique_ptr<JobFolder> job)
      : CellStore(options.limit),
        guest_(options.existing_only),
        path_(std::move(path)),
        job_(std::move(job)) {}

  Status Open() {
    Status opened = TryOpen();
    if (!opened.ok()) job_->Withdraw();
    return opened;
  }

  using CellStore::Forget;
  using CellStore::Propose;
  using CellStore::Read;

  Result<std::string> Propose(std::string_view key, std::string_view value,
                              Deadline /*deadline*/) override {
    for (const Status& status : {maker_.Check(), CheckKey(key), CheckValue(value)}) {
      if (!status.ok()) return status.WithContext(Describe());
    }
    const std::string name = CellName(key);
    Result<CellValue> stands = Look(name);
    if (!stands.ok()) return stands.status();
    if (stands.value()) return *std::move(stands).value();
    const Status published = Publish(name, value);
    stands = Look(name);
    if (!stands.ok()) return stands.status();
    if (stands.value()) return *std::move(stands).value();
    if (!published.ok()) return published;
    return Unavailable(
        Format("{}: cell '{}' is gone right after it was written: the folder is "
               "being emptied",
               Describe(), name));
  }

  Result<CellValue> Read(std::string_view key, Deadline /*deadline*/) override {
    for (const Status& status : {maker_.Check(), CheckKey(key)}) {
      if (!status.ok()) return status.WithContext(Describe());
    }
    return Look(CellName(key));
  }

  void Forget(std::string_view prefix, Deadline deadline) override {
    if (guest_ || !maker_.Here()) return;
    // Removes the whole store: without a nonce no rank trusts the rest, whatever part is left. The
    // second nonce goes first: if this process is killed in between, the next one restores it, and
    // nothing is lost.
    if (prefix.empty()) {
      ::unlinkat(Second(), kNonce, 0);
      ::unlinkat(First(), kNonce, 0);
    }
    const std::string start = nonce_ + "." + std::string(prefix);
    for (const Descriptor& folder : folders_) {
      ForEachName(folder.get(), kMostForgotten, [&](const std::string& name) {
        if (name.compare(0, start.size(), start) == 0) ::unlinkat(folder.get(), name.c_str(), 0);
        return std::chrono::steady_clock::now() < deadline;
      });
    }
  }

  void KeepAlive(Deadline deadline) override { job_->KeepAlive(deadline); }
  void Leave(Deadline deadline) override { job_->Leave(deadline); }
  double Fullness() override { return 0; }  // a full file system reports errors itself
  std::string Describe() const override { return "folder " + path_; }
  bool Mine() const override { return maker_.Here(); }

 private:
  Status TryOpen() {
    for (size_t i = 0; i < folders_.size(); ++i) {
      const std::string name = Format("{}", i + 1);
      const std::string shown = path_ + "/" + name;
      ASSIGN_OR_RETURN(Descriptor folder, guest_ ? OpenExistingFolder(job_->get(), name, shown)
                                                 : OpenPrivateFolder(job_->get(), name, shown));
      folders_[i] = std::move(folder);
    }
    if (!guest_) Sweep();
    const std::string mine = RandomName();
    // There is no nonce to check yet: this cell decides it.
    Result<CellValue> nonce = Standing(kNonce);
    if (nonce.ok() && !nonce.value()) {
      if (guest_) return NotFound(Format("no rank agrees in '{}'", path_));
      RETURN_IF_ERROR(Publish(kNonce, mine));
      nonce = Standing(kNonce);
    }
    if (!nonce.ok()) return nonce.status();
    if (!nonce.value() || !CheckKey(*nonce.value()).ok() || nonce.value()->size() != mine.size()) {
      return Unavailable(Format("'{}' has no nonce that can be used; remove the folder", path_));
    }
    nonce_ = *nonce.value();
    if (!guest_) job_->SweepSiblings(Usual());
    return {};
  }

  int First() const { return folders_[0].get(); }
  int Second() const { return folders_[1].get(); }
  std::string CellName(std::string_view key) const { return nonce_ + "." + std::string(key); }

  // Removes temporary files of processes that were killed before they published.
  void Sweep() const {
    ForEachName(First(), kMostSwept, [this](const std::string& name) {
      struct stat info;
      if (name.compare(0, sizeof(kTemporary) - 1, kTemporary) == 0 &&
          ::fstatat(First(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0 &&
          info.st_mtime + kOldSeconds < std::time(nullptr)) {
        ::unlinkat(First(), name.c_str(), 0);
      }
      return true;
    });
  }

  // Classifies a file system error: no space, permanent, or retryable.
  Status Failed(const char* what, const std::string& name, int error) const {
    std::string text =
        Format("{}: cannot {} cell '{}': {}", Describe(), what, name, ErrnoText(error));
    switch (error) {
      case ENOSPC:
      case EDQUOT:
      case EFBIG:
        return OutOfRoom(std::move(text));
      case ENOENT:
      case ESTALE:
      case ELOOP:
      case ENOTDIR:
      case EISDIR:
      case ENXIO:
        return Unavailable(std::move(text));
      default:
        return IoError(std::move(text));
    }
  }

  // One folder's copy of a cell.
  Result<CellValue> ReadCopy(int folder, const std::string& name) const {
    const auto failed = [&] { return Failed("read", name, errno); };
    const auto wrong = [&](const std::string& why) {
      return Unavailable(Format("{}: cannot read cell '{}': {}", Describe(), name, why));
    };
    const Descriptor file(
        ::openat(folder, name.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
    if (file.get() < 0) {
      if (errno == ENOENT) return CellValue();
      return failed();
    }
    struct stat info;
    if (::fstat(file.get(), &info) != 0) return failed();
    if (const std::string why = NotOurs(info); !why.empty()) return wrong(why);
    if (info.st_size < 0 || static_cast<uint64_t>(info.st_size) > kLongestValue + kLongestHead) {
      return wrong("it is too large");
    }
    std::string text(static_cast<size_t>(info.st_size), '\0');
    size_t have = 0;
    while (have < text.size()) {
      const ssize_t got = ::read(file.get(), text.data() + have, text.size() - have);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return failed();
      if (got == 0) break;
      have += static_cast<size_t>(got);
    }
    text.resize(have);
    Result<std::string> value = ParseCell(std::move(text));
    if (!value.ok()) return wrong(value.status().message());
    return CellValue(std::move(value).value());
  }

  // An NFS client caches for many seconds that a file did not exist; opening the folder makes it
  // revalidate.
  Result<CellValue> ReadFresh(int folder, const std::string& name) const {
    Result<CellValue> cell = ReadCopy(folder, name);
    if (!cell.ok() || cell.value()) return cell;
    const Descriptor look(::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    return ReadCopy(folder, name);
  }

  Status BeingEmptied(const std::string& what) const {
    return Unavailable(
        Format("{} was emptied or replaced while ranks agree in it ({}); use a folder that is "
               "not cleaned while the job runs",
               Describe(), what));
  }

  // The value of a cell that is in both folders, after copying it there if needed; nullopt: it is
  // in neither.
  Result<CellValue> Standing(const std::string& name) const {
    Result<CellValue> first = ReadFresh(First(), name);
    if (!first.ok()) return first;
    Result<CellValue> second = ReadFresh(Second(), name);
    if (!second.ok()) return second;
    if (!first.value() && second.value()) {
      // It may have been published between the two reads.
      first = ReadFresh(First(), name);
      if (!first.ok()) return first;
      if (!first.value()) return BeingEmptied("half of cell '" + name + "' is gone");
    }
    if (!first.value()) return CellValue();
    if (!second.value()) {
      // Its proposer has not linked it yet, or was killed. The result of link() is again ignored.
      const int error = Link(First(), name, Second(), name);
      second = ReadFresh(Second(), name);
      if (!second.ok()) return second;
      // It does not stand yet; the next reader tries again.
      if (!second.value() && error != 0 && error != EEXIST && error != ENOENT) {
        return IoError(
            Format("{}: cannot finish cell '{}': {}", Describe(), name, ErrnoText(error)));
      }
    }
    if (first.value() != second.value()) {
      return BeingEmptied("the halves of cell '" + name + "' differ");
    }
    return first;
  }

  Result<CellValue> Look(const std::string& name) const {
    ASSIGN_OR_RETURN(CellValue cell, Standing(name));
    // After the cell: see the top of this file.
    for (const Descriptor& folder : folders_) {
      ASSIGN_OR_RETURN(const CellValue nonce, ReadCopy(folder.get(), kNonce));
      if (!nonce) return BeingEmptied("its nonce is gone");
      if (*nonce != nonce_) return BeingEmptied("its nonce is another one");
    }
    return cell;
  }

  Status Publish(const std::string& name, std::string_view value) const {
    const std::string temporary = kTemporary + RandomName();
    const auto failed = [&](const char* what) {
      const int error = errno;
      ::unlinkat(First(), temporary.c_str(), 0);
      return Failed(what, name, error);
    };
    const QuietSignal quiet(SIGXFSZ);  // beyond `ulimit -f`
    const Descriptor file(::openat(First(), temporary.c_str(),
                                   O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (file.get() < 0) return failed("create");
    if (::fchmod(file.get(), 0600) != 0) return failed("create");
    if (WriteAll(file.get(), CellText(value)) != 0) return failed("write");
    if (::fsync(file.get()) != 0) return failed("flush");
    const int error = Link(First(), temporary, First(), name);
    ::unlinkat(First(), temporary.c_str(), 0);
    if (error == 0 || error == EEXIST) return {};
    return Failed("link", name, error);
  }

  // 0, or an errno, which may be wrong: see the top of this file.
  static int Link(int from, const std::string& old_name, int to, const std::string& name) {
    return ::linkat(from, old_name.c_str(), to, name.c_str(), 0) == 0 ? 0 : errno;
  }

  const Maker maker_;
  const bool guest_;
  const std::string path_;
  const std::unique_ptr<JobFolder> job_;
  std::array<Descriptor, 2> folders_;
  std::string nonce_;
};

}  // namespace

Result<std::unique_ptr<CellStore>> OpenFileStore(const StoreOptions& options,
                                                 const std::string& folder) {
  if (folder.empty() || folder.front() != '/') {
    return Invalid(
        Format("a store in a folder needs its full path, as in file:/scratch/me, and not "
               "'{}'",
               folder));
  }
  const Descriptor root(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (root.get() < 0) {
    return IoError(Format("cannot open the folder '{}' to agree in: {}", folder, ErrnoText(errno)));
  }
  const std::string mine = Format("diapason-{}", static_cast<unsigned>(::geteuid()));
  const std::string ours = folder + "/" + mine;
  ASSIGN_OR_RETURN(Descriptor parent, options.existing_only
                                          ? OpenExistingFolder(root.get(), mine, ours)
                                          : OpenPrivateFolder(root.get(), mine, ours));
  const std::string path = ours + "/" + options.job;
  ASSIGN_OR_RETURN(std::unique_ptr<JobFolder> job,
                   options.existing_only
                       ? JobFolder::Visit(std::move(parent), options.job, path)
                       : JobFolder::Enter(std::move(parent), options.job, path, options.limit));
  auto store = std::make_unique<FileStore>(options, path, std::move(job));
  RETURN_IF_ERROR(store->Open());
  return std::unique_ptr<CellStore>(std::move(store));
}

}  // namespace diapason::agree
