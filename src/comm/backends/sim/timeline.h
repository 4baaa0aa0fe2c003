#pragma once

#include <deque>
#include <map>
#include <memory>

#include "comm/backends/sim/cluster.h"

namespace diapason::comm::sim {

// One rank's virtual time: its clock, the collectives on its GPU and their interaction with
// compute.
//
// Collectives of one communicator run one after the other (a communicator is a stream), those of
// different communicators concurrently. While the rank computes, every running collective takes the
// share of the GPU that its channels occupy, and is itself slowed down. Nothing depends on real
// time or on threads: the same calls give the same times.
//
// A rank sees the end of a collective when its own GPU reaches it. Ranks synchronise at their next
// call.
class Timeline {
 public:
  // A collective that this rank has started. Its cost is known once all ranks have started it.
  struct Item {
    int stream = 0;
    double started = 0;
    bool known = false;
    double ready = 0;    // when the last rank started it
    double seconds = 0;  // on an otherwise idle GPU
    int channels = 0;
    bool finished = false;
    double end = 0;

   private:
    friend class Timeline;
    double cursor_ = 0;  // its progress is counted up to this time
    double left_ = 0;
  };
  using Handle = std::shared_ptr<Item>;

  // Channels take at most this share of a GPU, so that compute always progresses.
  static constexpr double kMostShare = 0.9;

  double now() const { return now_; }
  Handle Start(int stream);
  // Sets the results of an item. A second call changes nothing.
  static void Know(const Handle& item, double ready, double seconds, int channels);
  // Waits for an item: advances the clock to its end if that is later. REQUIRES: it and the items
  // before it in its stream are known.
  void Finish(const Handle& item);
  // Advances the clock to `time` if that is later, without compute.
  void MoveTo(double time);
  // Computes for `seconds` as if the rank had its GPU to itself. Items that are not known yet do
  // not count.
  void Work(double seconds, const Compute& gpu);
  // The stream's communicator is destroyed, with its items.
  void Drop(int stream) { streams_.erase(stream); }
  // Items that are not finished at this time, as far as known.
  size_t unfinished();

 private:
  struct Stream {
    std::deque<Handle> items;
    double end = 0;  // of the last finished item
  };

  // Progress without compute until `time`.
  static void Idle(Stream* stream, double time);
  static void Begin(Stream* stream);
  static void End(Stream* stream, double time);

  double now_ = 0;
  std::map<int, Stream> streams_;
};

}  // namespace diapason::comm::sim
