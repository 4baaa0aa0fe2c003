#pragma once

#include <functional>
#include <memory>
#include <string>

#include "agree/store.h"

namespace diapason::agree {

// A store for ranks that must get an answer. A call that cannot reach the store is repeated, with
// growing and random pauses, until its deadline; without a deadline of its own, until the patience
// ends. Waiting is safe: the other ranks of the call wait in the collective.
//
// No lock is held between attempts, and each attempt takes at most kUsualLimit. All other functions
// forward to the underlying store, which must outlive this object.
class PatientStore : public CellStore {
 public:
  // Called when a wait begins and when it ends, once each per call that waits: for the log.
  using Say = std::function<void(const std::string& text)>;

  PatientStore(CellStore* store, std::chrono::milliseconds patience, Say say);

  using CellStore::Forget;
  using CellStore::Propose;
  using CellStore::Read;
  using CellStore::ReadMany;
  Result<std::string> Propose(std::string_view key, std::string_view value,
                              Deadline deadline) override;
  Result<std::optional<std::string>> Read(std::string_view key, Deadline deadline) override;
  Result<std::vector<std::optional<std::string>>> ReadMany(const std::vector<std::string>& keys,
                                                           Deadline deadline) override;
  void Forget(std::string_view prefix, Deadline deadline) override {
    store_->Forget(prefix, deadline);
  }
  void Done(std::string_view prefix, int members, Deadline deadline) override {
    store_->Done(prefix, members, deadline);
  }
  double Fullness() override { return store_->Fullness(); }
  std::string Describe() const override { return store_->Describe(); }
  bool Mine() const override { return store_->Mine(); }

 private:
  template <typename Value, typename Attempt>
  Result<Value> Patiently(Deadline deadline, const Attempt& attempt) const;

  CellStore* const store_;
  const Say say_;
};

}  // namespace diapason::agree
