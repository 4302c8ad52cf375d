#include "comm/ring.hpp"

#include <algorithm>
#include <utility>

namespace nsp {

uint64_t FixedRing::entered(CollectiveRecord record) {
  std::lock_guard lock(mutex_);
  Entry* place = &entries_[0];
  for (Entry& entry : entries_) {
    const bool replaceable = entry.record.sequence == 0 || entry.finished, chosen = place->record.sequence == 0 || place->finished;
    // Oldest of the replaceable ones; while there is none, the newest.
    if (replaceable ? !chosen || entry.record.sequence < place->record.sequence
                    : !chosen && entry.record.sequence > place->record.sequence) {
      place = &entry;
    }
  }
  record.sequence = ++last_;
  place->record = std::move(record);
  place->finished = false;
  place->entered = std::chrono::steady_clock::now();
  return last_;
}

FixedRing::Entry* FixedRing::find(uint64_t sequence) noexcept {
  for (Entry& entry : entries_) {
    if (entry.record.sequence == sequence) return &entry;
  }
  return nullptr;
}

void FixedRing::waiting(uint64_t sequence, const std::string& ranks) {
  std::lock_guard lock(mutex_);
  if (Entry* entry = find(sequence)) entry->record.waiting_for = ranks;
}

void FixedRing::finished(uint64_t sequence) {
  std::lock_guard lock(mutex_);
  if (Entry* entry = find(sequence)) {
    entry->finished = true;
    entry->ended = std::chrono::steady_clock::now();
  }
}

std::vector<FixedRing::Entry> FixedRing::entries() const {
  std::vector<Entry> all;
  {
    std::lock_guard lock(mutex_);
    std::copy_if(entries_.begin(), entries_.end(), std::back_inserter(all), [](const Entry& entry) { return entry.record.sequence != 0; });
  }
  std::sort(all.begin(), all.end(), [](const Entry& a, const Entry& b) { return a.record.sequence < b.record.sequence; });
  return all;
}

uint64_t FixedRing::oldest_unfinished() const {
  std::lock_guard lock(mutex_);
  uint64_t oldest = 0;
  for (const Entry& entry : entries_) {
    if (entry.record.sequence != 0 && !entry.finished && (oldest == 0 || entry.record.sequence < oldest)) oldest = entry.record.sequence;
  }
  return oldest;
}

}  // namespace nsp
