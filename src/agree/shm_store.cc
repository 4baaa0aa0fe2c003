// Ranks that share /dev/shm agree in one file there, which all of them have mapped.
//
// The file is <root>/diapason-<user>/<job>. Every process holds a shared flock on it as long as it
// uses it, so an unlocked file has no users left, however they ended. Such a file was left by a
// killed job, and the next process removes it. The last process of a job to leave removes its file.
//
// The memory of the whole file is reserved at creation: a page that a full /dev/shm cannot provide
// later would end the process with a signal. If there is not enough space, opening the store fails.
//
// Removing the file or its folder while ranks have it mapped does no harm. Truncating it would:
// ranks would access memory that no longer exists. Only this user could do that, and this code
// never does.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <thread>

#include "agree/arena.h"
#include "agree/folder_names.h"
#include "agree/private_folder.h"
#include "agree/quiet_signal.h"
#include "agree/stores.h"
#include "base/file.h"

namespace diapason::agree {
namespace {

using std::chrono::steady_clock;

// Files of other jobs that are checked for leftovers when a store is opened.
constexpr int kMostSwept = 64;
constexpr auto kPause = std::chrono::microseconds(200);

struct Mapping {
  ~Mapping() {
    if (memory != MAP_FAILED) ::munmap(memory, bytes);
  }
  Mapping(int fd, uint64_t size)
      : memory(::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)), bytes(size) {}
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  void* memory;
  uint64_t bytes;
};

// Sets the file to `bytes` and reserves its memory. Beyond `ulimit -f` the system would also send a
// signal.
Status Reserve(int fd, uint64_t bytes) {
  rlimit most;
  if (::getrlimit(RLIMIT_FSIZE, &most) == 0 && most.rlim_cur < bytes) {
    return OutOfRoom(
        Format("files may have {} bytes here (ulimit -f), and it needs {}", most.rlim_cur, bytes));
  }
  const QuietSignal quiet(SIGXFSZ);
  int result = 0;
  do {
    result = ::fallocate(fd, 0, 0, static_cast<off_t>(bytes));
  } while (result != 0 && errno == EINTR);
  if (result == 0) return {};
  const std::string why =
      Format("cannot reserve {} bytes of shared memory to agree in: {}", bytes, ErrnoText(errno));
  return errno == ENOSPC || errno == EFBIG ? OutOfRoom(why) : IoError(why);
}

class ShmStore : public CellStore {
 public:
  ShmStore(const StoreOptions& options, std::string where, Descriptor folder, std::string name,
           Descriptor file, std::unique_ptr<Mapping> mapping)
      : CellStore(options.limit),
        guest_(options.existing_only),
        where_(std::move(where)),
        folder_(std::move(folder)),
        name_(std::move(name)),
        file_(std::move(file)),
        mapping_(std::move(mapping)),
        arena_(mapping_->memory, mapping_->bytes) {}

  ~ShmStore() override { RemoveIfLast(); }
  void Leave(Deadline) override { RemoveIfLast(); }

  using CellStore::Forget;
  using CellStore::Propose;
  using CellStore::Read;

  Result<std::string> Propose(std::string_view key, std::string_view value,
                              Deadline /*deadline*/) override {
    for (const Status& status : {maker_.Check(), CheckKey(key), CheckValue(value)}) {
      if (!status.ok()) return status.WithContext(where_);
    }
    Result<std::string> stands = arena_.Propose(key, value);
    if (!stands.ok()) return stands.status().WithContext(where_);
    return stands;
  }

  Result<std::optional<std::string>> Read(std::string_view key, Deadline /*deadline*/) override {
    for (const Status& status : {maker_.Check(), CheckKey(key)}) {
      if (!status.ok()) return status.WithContext(where_);
    }
    Result<std::optional<std::string>> stands = arena_.Read(key);
    if (!stands.ok()) return stands.status().WithContext(where_);
    return stands;
  }

  void Forget(std::string_view, Deadline) override {}  // a communicator's cells are freed by Done
  void Done(std::string_view prefix, int members, Deadline) override {
    if (guest_ || !maker_.Here() || members <= 0) return;
    // If it fails, the space is not reused.
    static_cast<void>(arena_.Done(prefix, static_cast<uint32_t>(members)).ok());
  }
  double Fullness() override { return maker_.Here() ? arena_.Fullness() : 1; }
  std::string Describe() const override { return "shared memory " + where_; }
  bool Mine() const override { return maker_.Here(); }

 private:
  void RemoveIfLast() {
    // A lock belongs to all copies of a descriptor: if a child released it, the parent would lose
    // it.
    if (guest_ || !maker_.Here()) return;
    if (::flock(file_.get(), LOCK_EX | LOCK_NB) != 0) return;  // others are still there
    struct stat info;
    if (::fstat(file_.get(), &info) == 0 && StillNamed(folder_.get(), name_, info)) {
      ::unlinkat(folder_.get(), name_.c_str(), 0);
    }
  }

  const Maker maker_;
  const bool guest_;
  const std::string where_;
  const Descriptor folder_;
  const std::string name_;
  const Descriptor file_;
  const std::unique_ptr<Mapping> mapping_;
  Arena arena_;
};

// Removes `name` if it is an arena without users. A process that has opened it and not yet locked
// it will see that the name is gone or belongs to another file, and start over.
bool RemoveRemains(int folder, const std::string& name, int fd) {
  struct stat info;
  if (::fstat(fd, &info) != 0 || !NotOurs(info).empty()) return false;
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0) return false;
  if (StillNamed(folder, name, info)) ::unlinkat(folder, name.c_str(), 0);
  return true;
}

void Sweep(int folder, const std::string& ours) {
  ForEachName(folder, kMostSwept, [&](const std::string& name) {
    if (name == ours) return true;
    const Descriptor file(
        ::openat(folder, name.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
    if (file.get() >= 0) RemoveRemains(folder, name, file.get());
    return true;
  });
}

class Opening {
 public:
  Opening(const StoreOptions& options, const ShmOptions& shm)
      : options_(options), shm_(shm), name_(options.job) {
    folder_name_ = Format("diapason-{}", static_cast<unsigned>(::geteuid()));
    folder_path_ = shm.root + "/" + folder_name_;
    path_ = folder_path_ + "/" + name_;
  }

  Result<std::unique_ptr<CellStore>> Run() {
    const auto deadline = steady_clock::now() + options_.limit;
    while (true) {
      // Opened again each time: the folder itself may have been removed.
      ASSIGN_OR_RETURN(Descriptor folder, OpenFolder());
      folder_ = std::move(folder);
      Result<std::unique_ptr<CellStore>> store = Try();
      if (!store.ok() || store.value() != nullptr) return store;
      if (steady_clock::now() >= deadline) {
        return TimedOut(Format("cannot open '{}' within {} ms: others keep replacing it", path_,
                               options_.limit.count()));
      }
      std::this_thread::sleep_for(kPause);
    }
  }

 private:
  Result<Descriptor> OpenFolder() {
    const Descriptor root(::open(shm_.root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (root.get() < 0) {
      return IoError(Format("cannot open '{}': {}; use a store in a file system or in Redis",
                            shm_.root, ErrnoText(errno)));
    }
    if (options_.existing_only) {
      return OpenExistingFolder(root.get(), folder_name_, folder_path_);
    }
    return OpenPrivateFolder(root.get(), folder_name_, folder_path_);
  }

  Status NoJob() const {
    return NotFound(Format("no rank of job '{}' agrees in '{}'", name_, path_));
  }

  Status Failed(const char* what) const {
    return IoError(Format("cannot {} '{}': {}", what, path_, ErrnoText(errno)));
  }

  // Null: another process interfered; start over.
  Result<std::unique_ptr<CellStore>> Try() {
    Descriptor file(
        ::openat(folder_.get(), name_.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
    if (file.get() < 0) {
      if (errno != ENOENT) return Failed("open");
      if (options_.existing_only) return NoJob();
      return Create();
    }
    struct stat info;
    if (::fstat(file.get(), &info) != 0) return Failed("look at");
    if (const std::string wrong = NotOurs(info); !wrong.empty()) {
      return Unavailable(Format("'{}' cannot be used: {}; remove it", path_, wrong));
    }
    if (options_.existing_only) {
      // Ranks hold the lock; if none does, the descriptor's end releases this one at once.
      if (::flock(file.get(), LOCK_EX | LOCK_NB) == 0) return NoJob();
      return AttachIfFits(std::move(file), info);
    }
    if (RemoveRemains(folder_.get(), name_, file.get())) return std::unique_ptr<CellStore>();
    // Blocked only while another process checks whether it is a leftover.
    if (::flock(file.get(), LOCK_SH | LOCK_NB) != 0) return std::unique_ptr<CellStore>();
    if (!StillNamed(folder_.get(), name_, info)) return std::unique_ptr<CellStore>();
    return AttachIfFits(std::move(file), info);
  }

  Result<std::unique_ptr<CellStore>> AttachIfFits(Descriptor file, const struct stat& info) {
    if (static_cast<uint64_t>(info.st_size) != shm_.bytes) {
      return Unavailable(
          Format("'{}' has {} bytes and not {}: it is in use by another version "
                 "of diapason, or by another program",
                 path_, info.st_size, shm_.bytes));
    }
    return Attach(std::move(file));
  }

  Result<std::unique_ptr<CellStore>> Attach(Descriptor file) {
    auto mapping = std::make_unique<Mapping>(file.get(), shm_.bytes);
    if (mapping->memory == MAP_FAILED) return Failed("map");
    if (const Status sound = Arena::Check(mapping->memory, shm_.bytes); !sound.ok()) {
      return sound.WithContext("'" + path_ + "'");
    }
    if (!options_.existing_only) Sweep(folder_.get(), name_);
    return std::unique_ptr<CellStore>(std::make_unique<ShmStore>(
        options_, path_, std::move(folder_), name_, std::move(file), std::move(mapping)));
  }

  Result<std::unique_ptr<CellStore>> Create() {
    const std::string temporary = ".new-" + RandomName();
    Descriptor file(::openat(folder_.get(), temporary.c_str(),
                             O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (file.get() < 0) {
      if (errno == ENOENT) return std::unique_ptr<CellStore>();  // the folder was removed
      return Failed("create");
    }
    const Status ready = Fill(file.get());
    // Linked when locked and complete: no process ever sees it under its name in any other state.
    const bool linked = ready.ok() && ::linkat(folder_.get(), temporary.c_str(), folder_.get(),
                                               name_.c_str(), 0) == 0;
    const int error = errno;
    ::unlinkat(folder_.get(), temporary.c_str(), 0);
    if (!ready.ok()) return ready.WithContext("'" + path_ + "'");
    if (linked) return Attach(std::move(file));
    // Another process was faster, or took this file for a leftover before it was locked.
    if (error == EEXIST || error == ENOENT) return std::unique_ptr<CellStore>();
    errno = error;
    return Failed("create");
  }

  Status Fill(int fd) const {
    // Held as long as the store is open; blocked only for the short time in which another process
    // checks whether it is a leftover.
    const auto deadline = steady_clock::now() + options_.limit;
    while (::flock(fd, LOCK_SH | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK && errno != EINTR) return IoError(ErrnoText(errno));
      if (steady_clock::now() >= deadline) return TimedOut("another process holds a lock on it");
      std::this_thread::sleep_for(kPause);
    }
    // The process's umask may have removed this user's own permissions.
    if (::fchmod(fd, 0600) != 0) return IoError(ErrnoText(errno));
    RETURN_IF_ERROR(Reserve(fd, shm_.bytes));
    const Mapping mapping(fd, shm_.bytes);
    if (mapping.memory == MAP_FAILED) return IoError(ErrnoText(errno));
    Arena::Prepare(mapping.memory, shm_.bytes, RandomWord());
    return {};
  }

  const StoreOptions& options_;
  const ShmOptions& shm_;
  const std::string name_;
  std::string folder_name_;
  std::string folder_path_;
  std::string path_;
  Descriptor folder_;
};

}  // namespace

Result<std::unique_ptr<CellStore>> OpenShmStore(const StoreOptions& options,
                                                const ShmOptions& shm) {
  return Opening(options, shm).Run();
}

}  // namespace diapason::agree
