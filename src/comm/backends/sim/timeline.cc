#include "comm/backends/sim/timeline.h"

#include <algorithm>
#include <vector>

namespace diapason::comm::sim {

Timeline::Handle Timeline::Start(int stream) {
  auto item = std::make_shared<Item>();
  item->stream = stream;
  item->started = now_;
  streams_[stream].items.push_back(item);
  return item;
}

void Timeline::Know(const Handle& item, double ready, double seconds, int channels) {
  if (item->known) return;
  item->known = true;
  item->ready = ready;
  item->seconds = seconds;
  item->channels = channels;
  item->left_ = seconds;
  item->cursor_ = ready;
}

// The first item waits for its own start and for the end of the one before it.
void Timeline::Begin(Stream* stream) {
  Item& item = *stream->items.front();
  item.cursor_ = std::max({item.cursor_, item.ready, stream->end});
}

void Timeline::End(Stream* stream, double time) {
  Item& item = *stream->items.front();
  item.finished = true;
  item.end = time;
  item.left_ = 0;
  stream->end = time;
  stream->items.pop_front();
}

void Timeline::Idle(Stream* stream, double time) {
  while (!stream->items.empty() && stream->items.front()->known) {
    Begin(stream);
    Item& item = *stream->items.front();
    if (item.cursor_ + item.left_ <= time) {
      End(stream, item.cursor_ + item.left_);
      continue;
    }
    if (item.cursor_ < time) {
      item.left_ -= time - item.cursor_;
      item.cursor_ = time;
    }
    return;
  }
}

void Timeline::Finish(const Handle& item) {
  const auto found = streams_.find(item->stream);
  while (!item->finished && found != streams_.end() && !found->second.items.empty()) {
    Begin(&found->second);
    const Item& first = *found->second.items.front();
    End(&found->second, first.cursor_ + first.left_);
  }
  MoveTo(item->end);
}

void Timeline::MoveTo(double time) { now_ = std::max(now_, time); }

void Timeline::Work(double seconds, const Compute& gpu) {
  const double slower = 1 + gpu.collective_slowdown;
  double left = seconds;
  while (left > 0) {
    // The running items, and when the next one begins.
    std::vector<Stream*> running;
    double share = 0;
    double step = -1;
    for (auto& [id, stream] : streams_) {
      Idle(&stream, now_);
      if (stream.items.empty() || !stream.items.front()->known) continue;
      const Item& item = *stream.items.front();
      if (item.cursor_ > now_) {
        if (step < 0 || item.cursor_ - now_ < step) step = item.cursor_ - now_;
        continue;
      }
      running.push_back(&stream);
      share += item.channels * gpu.channel_cost / gpu.multiprocessors;
    }
    const double speed = 1 - std::min(share, kMostShare);
    if (step < 0 || left / speed < step) step = left / speed;
    for (const Stream* stream : running) {
      step = std::min(step, stream->items.front()->left_ * slower);
    }
    // The rate is constant up to the next event.
    const double until = now_ + step;
    for (Stream* stream : running) {
      Item& item = *stream->items.front();
      if (item.left_ * slower <= step) {
        End(stream, until);
      } else {
        item.left_ -= step / slower;
        item.cursor_ = until;
      }
    }
    left -= step * speed;
    // Discards rounding errors.
    if (left < seconds * 1e-14) left = 0;
    now_ = until;
  }
}

size_t Timeline::unfinished() {
  size_t count = 0;
  for (auto& [id, stream] : streams_) {
    Idle(&stream, now_);
    count += stream.items.size();
  }
  return count;
}

}  // namespace diapason::comm::sim
