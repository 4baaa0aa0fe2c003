#pragma once

namespace diapason::agree {

// Closes a connection unless Keep() was called. Also an exception (no memory) must not leave one
// open on which a reply is still to come, or whose server was not recognised: the next request
// would take that reply for its own.
template <typename Link>
class LinkGuard {
 public:
  explicit LinkGuard(Link* link) : link_(link) {}
  ~LinkGuard() {
    if (link_ != nullptr) link_->Close();
  }
  LinkGuard(const LinkGuard&) = delete;
  LinkGuard& operator=(const LinkGuard&) = delete;
  void Keep() { link_ = nullptr; }

 private:
  Link* link_;
};

}  // namespace diapason::agree
