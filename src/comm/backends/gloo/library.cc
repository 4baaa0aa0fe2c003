#include "comm/backends/gloo/library.h"

#include <gloo/common/error.h>
#include <gloo/transport/address.h>
#include <gloo/transport/context.h>
#include <gloo/transport/pair.h>
#include <gloo/transport/tcp/device.h>
#include <net/if.h>
#include <pthread.h>

#include <csignal>
#include <cstdlib>
#include <cstring>

#include "base/environment.h"
#include "base/text.h"

namespace diapason::comm {
namespace {

// Removes the source location at the start of Gloo's messages.
std::string WithoutPlace(const std::string& text) {
  const size_t end = text.find("] ");
  return text.starts_with('[') && end != std::string::npos ? text.substr(end + 2) : text;
}

bool Has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

// Gloo writes to connections whose peer may have died; SIGPIPE would end a program that does not
// expect it. Gloo's own thread is started inside such a scope and inherits it.
class PipeSignalBlocked {
 public:
  PipeSignalBlocked() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~PipeSignalBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  PipeSignalBlocked(const PipeSignalBlocked&) = delete;
  PipeSignalBlocked& operator=(const PipeSignalBlocked&) = delete;

  // Consumes the signal that a failed write may have left pending for this thread.
  void Discard() const {
    if (sigismember(&before_, SIGPIPE) == 1) return;  // the program has blocked it itself
    const timespec no_time{};
    while (sigtimedwait(&pipe_, nullptr, &no_time) == SIGPIPE) {
    }
  }

 private:
  sigset_t pipe_{};
  sigset_t before_{};
};

}  // namespace

Status FromGloo(const std::exception& error) {
  const std::string text = WithoutPlace(error.what());
  const std::string lower = ToLower(text);
  if (Has(lower, "timed out") || Has(lower, "timeout")) return TimedOut(text);
  if (dynamic_cast<const gloo::IoException*>(&error) != nullptr) return PeerLost(text);
  return IoError(text);
}

Status GuardGloo(const std::function<void()>& call) {
  const PipeSignalBlocked blocked;
  try {
    call();
  } catch (const std::exception& error) {
    blocked.Discard();
    return FromGloo(error);
  }
  return {};
}

Result<std::shared_ptr<gloo::transport::Device>> OpenGlooDevice(const RankInfo& place) {
  gloo::transport::tcp::attr attributes;
  const std::string interface = ProcessEnvironment().Get("GLOO_SOCKET_IFNAME").value_or("");
  if (!interface.empty()) {
    if (if_nametoindex(interface.c_str()) == 0) {
      return Unavailable(
          Format("GLOO_SOCKET_IFNAME names the interface '{}', which this host does "
                 "not have",
                 interface));
    }
    attributes.iface = interface;
  } else {
    attributes.hostname = place.address;
  }
  std::shared_ptr<gloo::transport::Device> device;
  const Status status = GuardGloo([&] { device = gloo::transport::tcp::CreateDevice(attributes); });
  if (!status.ok()) return status.WithContext("opening " + place.address);
  return device;
}

Status GlooMesh::MakePairs(const std::shared_ptr<gloo::transport::Device>& device,
                           std::chrono::milliseconds timeout, std::string* addresses) {
  setTimeout(timeout);
  return GuardGloo([&] {
    device_ = device;
    transportContext_ = device->createContext(rank, size);
    transportContext_->setTimeout(timeout);
    for (int peer = 0; peer < size; ++peer) {
      std::string address;
      if (peer != rank) {
        const std::vector<char> bytes = transportContext_->createPair(peer)->address().bytes();
        address.assign(bytes.begin(), bytes.end());
      }
      const auto length = static_cast<uint32_t>(address.size());
      addresses->append(reinterpret_cast<const char*>(&length), sizeof(length));
      *addresses += address;
    }
    const std::lock_guard lock(mutex_);
    if (closed_) throw std::runtime_error("the connections were closed");
    ready_ = true;
  });
}

Status GlooMesh::Connect(rendezvous::RendezvousStore* store, const std::string& key,
                         const std::vector<int>& members,
                         const std::shared_ptr<gloo::transport::Device>& device, GlooWait wait,
                         std::chrono::milliseconds timeout, Deadline deadline) {
  std::string addresses;
  RETURN_IF_ERROR(MakePairs(device, timeout, &addresses));
  // Every rank publishes, for every other rank, the address of its end of the connection.
  ASSIGN_OR_RETURN(const std::vector<std::string> all,
                   store->Gather(key, members, addresses, deadline));
  const Status connected = GuardGloo([&] {
    for (int peer = 0; peer < size; ++peer) {
      if (peer == rank) continue;
      const std::string& theirs = all[static_cast<size_t>(peer)];
      size_t at = 0;
      uint32_t length = 0;
      for (int i = 0; i <= rank; ++i) {
        if (theirs.size() < at + sizeof(length)) throw std::runtime_error("damaged address list");
        std::memcpy(&length, theirs.data() + at, sizeof(length));
        at += sizeof(length);
        if (i < rank) at += length;
      }
      if (theirs.size() < at + length) throw std::runtime_error("damaged address list");
      const std::vector<char> address(theirs.begin() + static_cast<ptrdiff_t>(at),
                                      theirs.begin() + static_cast<ptrdiff_t>(at + length));
      getPair(peer)->connect(address);
    }
  });
  if (!connected.ok() || wait == GlooWait::kAsync) return connected;
  // Only after all ranks have connected: Gloo's thread still accepts connections of other ranks,
  // and must not find a socket that has become blocking.
  RETURN_IF_ERROR(store->Gather(key + "/through", members, "", deadline));
  return GuardGloo([&] {
    for (int peer = 0; peer < size; ++peer) {
      if (peer != rank) getPair(peer)->setSync(true, wait == GlooWait::kPolling);
    }
  });
}

void GlooMesh::Close() noexcept {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  if (!ready_) return;
  for (int peer = 0; peer < size; ++peer) {
    if (peer == rank) continue;
    const std::unique_ptr<gloo::transport::Pair>& pair = transportContext_->getPair(peer);
    if (pair == nullptr) continue;
    const Status closed = GuardGloo([&] { pair->close(); });
    static_cast<void>(closed);  // it is being closed in any case
  }
}

}  // namespace diapason::comm
