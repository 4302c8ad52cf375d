// The arenas that own all persistent state: for each declared kind one allocation, with one range per segment.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/tensor/param_table.hpp"
#include "nsp/device.hpp"
#include "nsp/memory.hpp"

namespace nsp {

class StateArena : public StateStorage {
 public:
  // owned: per segment, this rank's range. Allocates and zeroes everything; Error(memory) names the kind.
  StateArena(Device& device, Stream& stream, const ParamTable& table, std::vector<StateDecl> decls, std::vector<Range> owned);

  TensorView view(StateId state, Range range) const override;
  // A full-extent state's whole storage of a segment, padding included, 1-D.
  TensorView storage(StateId state, int segment) const;

  const std::vector<StateDecl>& decls() const noexcept { return decls_; }
  const std::vector<Range>& owned() const noexcept { return owned_; }
  Range held(StateId state, int segment) const;  // what this rank holds of it
  StateId find(const std::string& kind) const;   // -1 if there is none

 private:
  struct Place {
    Range range;          // what is held
    int64_t offset = 0;   // bytes into the buffer
    int64_t storage = 0;  // elements, with padding
  };
  std::vector<StateDecl> decls_;
  std::vector<Range> owned_;
  std::vector<std::vector<Place>> places_;  // [state][segment]
  std::vector<Buffer> buffers_;
};

}  // namespace nsp
