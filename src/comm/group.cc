#include "comm/group_state.h"
#include "diapason/comm.h"

namespace diapason {

Work::Work(std::unique_ptr<comm::WorkState> state) : state_(std::move(state)) {}
Work::Work(Work&&) noexcept = default;
Work& Work::operator=(Work&&) noexcept = default;
Work::~Work() = default;

Status Work::Wait(std::chrono::milliseconds limit) {
  if (state_ == nullptr) return Invalid("this Work was moved away");
  return state_->Wait(limit);
}

bool Work::Done() { return state_ == nullptr || state_->Done(); }

Group::Group(std::shared_ptr<comm::GroupState> state) : state_(std::move(state)) {}
Group::~Group() = default;

int Group::rank() const { return state_->parts().place.rank; }
int Group::size() const { return state_->parts().place.size; }
int Group::local_rank() const { return state_->parts().place.local_rank; }
int Group::nodes() const { return state_->parts().place.nodes; }
const std::string& Group::backend() const { return state_->parts().backend; }
const std::string& Group::description() const { return state_->parts().description; }
bool Group::simulated() const { return state_->simulated(); }

Status Group::AllReduce(const void* in, void* out, size_t count, DataType type, ReduceOp reduce) {
  return state_->AllReduce(in, out, count, type, reduce);
}
Status Group::Run(const Call& call) { return state_->Run(call); }
Work Group::Start(const Call& call) { return Work(state_->Start(call, state_)); }

Result<std::unique_ptr<Group>> Group::Split(int color, int key) {
  ASSIGN_OR_RETURN(std::shared_ptr<comm::GroupState> state, state_->Split(color, key));
  if (state == nullptr) return std::unique_ptr<Group>();
  return std::unique_ptr<Group>(new Group(std::move(state)));
}

Statistics Group::statistics() const { return state_->statistics(); }
void Group::ResetStatistics() { state_->ResetStatistics(); }
double Group::Now() const { return state_->Now(); }
Status Group::SimulateCompute(double seconds) { return state_->SimulateCompute(seconds); }

}  // namespace diapason
