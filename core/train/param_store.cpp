#include "core/train/param_store.hpp"

namespace nsp {

namespace {
// Extends an acquired whole segment by the padding rows that lie behind it in storage.
TensorView with_padding(TensorView whole, int64_t storage) {
  return TensorView(whole.data(), whole.dtype(), {storage});
}
}  // namespace

TensorView ParamStore::weights(int segment) {
  return with_padding(cache_.acquire(weights_state, table_.whole(segment), stream_), arena_.storage(weights_state, segment).elements());
}

TensorView ParamStore::gradients(int segment) {
  return with_padding(cache_.acquire(gradients_state, table_.whole(segment), stream_), arena_.storage(gradients_state, segment).elements());
}

void ParamStore::release(int segment, bool gradients_written) {
  cache_.release(weights_state, table_.whole(segment), false);
  if (gradients_written) cache_.release(gradients_state, table_.whole(segment), true);
}

}  // namespace nsp
