// The names of tensors in a checkpoint (docs/checkpoint_format.md); what writes and what reads must agree on them.
#pragma once

#include <algorithm>
#include <string>

namespace nsp {

inline const std::string model_prefix = "/model/";

// A state that all replicas have in common; the weights' is /model.
inline std::string common_prefix(const std::string& kind) {
  if (kind == "weights") return model_prefix;
  return std::string("/state/").append(kind).append("/");
}

// A replica's own.
inline std::string replica_prefix(int replica, const std::string& kind) {
  const std::string digits = std::to_string(replica);
  std::string prefix = "/replica_";
  prefix.append(4 - std::min<std::size_t>(4, digits.size()), '0');
  return prefix.append(digits).append("/").append(kind).append("/");
}

// The kind of a state in the name of one of its tensors; empty for /model, whose kind is the weights.
inline std::string kind_in(const std::string& name) {
  if (name.rfind("/state/", 0) != 0 && name.rfind("/replica_", 0) != 0) return "";
  const std::size_t begin = name.find('/', 1) + 1;
  return name.substr(begin, name.find('/', begin) - begin);
}

}  // namespace nsp
