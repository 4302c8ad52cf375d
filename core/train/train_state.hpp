// What a run knows besides the states in its arenas.
#pragma once

#include <cstdint>

namespace nsp {

struct TrainState {
  int64_t step = 0;             // finished steps
  int64_t updates = 0;          // updates that this replica's optimizer made; bad steps do not count
  int64_t bad_in_a_row = 0;     // of this replica
  bool evaluation_due = false;  // of this step: the run was asked to stop before it was done
};

}  // namespace nsp
