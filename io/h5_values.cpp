// Attributes and small data sets: columns of int64 and texts of fixed length (readable by any HDF5 reader).
#include <algorithm>
#include <cstring>

#include "io/h5.hpp"

namespace nsp::h5 {
namespace {

Id text_type(std::size_t bytes, const Check& check) {
  Id type(check(H5Tcopy(H5T_C_S1)), H5Tclose);
  check(H5Tset_size(type.get(), std::max<std::size_t>(bytes, 1)));  // HDF5 has no empty strings
  check(H5Tset_strpad(type.get(), H5T_STR_NULLPAD));
  check(H5Tset_cset(type.get(), H5T_CSET_UTF8));
  return type;
}

Id simple_space(std::size_t count, const Check& check) {
  const hsize_t size = count;
  return Id(check(H5Screate_simple(1, &size, nullptr)), H5Sclose);
}

void write_set(hid_t file, const std::string& path, const Id& type, const Id& space, const void* data, const Check& check) {
  const Id links = creates_groups(check);
  const Id set(check(H5Dcreate2(file, path.c_str(), type.get(), space.get(), links.get(), H5P_DEFAULT, H5P_DEFAULT)), H5Dclose);
  check(H5Dwrite(set.get(), type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, data));
}

std::string trimmed(const char* data, std::size_t bytes) {
  return std::string(data, strnlen(data, bytes));
}

// The type of a data set of fixed texts or of one attribute, if it is one.
Id fixed_text_type(hid_t type_id, const Check& check) {
  Id type(check(type_id), H5Tclose);
  if (H5Tget_class(type.get()) != H5T_STRING || check(H5Tis_variable_str(type.get())) > 0) check.fail("a text has another type than text");
  return type;
}

int64_t bounded_count(const Id& set, std::size_t element_bytes, int64_t limit, const Check& check) {
  const Id space(check(H5Dget_space(set.get())), H5Sclose);
  const int64_t count = check(H5Sget_simple_extent_npoints(space.get()));
  if (count > limit / static_cast<int64_t>(std::max<std::size_t>(element_bytes, 1))) check.fail("a table is larger than its file");
  return count;
}

}  // namespace

Id creates_groups(const Check& check) {
  Id links(check(H5Pcreate(H5P_LINK_CREATE)), H5Pclose);
  check(H5Pset_create_intermediate_group(links.get(), 1));
  return links;
}

void write_attribute(hid_t object, const char* name, const std::vector<int64_t>& values, const Check& check) {
  const Id space = values.size() == 1 ? Id(check(H5Screate(H5S_SCALAR)), H5Sclose) : simple_space(values.size(), check);
  const Id attribute(check(H5Acreate2(object, name, H5T_STD_I64LE, space.get(), H5P_DEFAULT, H5P_DEFAULT)), H5Aclose);
  check(H5Awrite(attribute.get(), H5T_NATIVE_INT64, values.data()));
}

void write_attribute(hid_t object, const char* name, const std::string& text, const Check& check) {
  const Id type = text_type(text.size(), check);
  const Id space(check(H5Screate(H5S_SCALAR)), H5Sclose);
  const Id attribute(check(H5Acreate2(object, name, type.get(), space.get(), H5P_DEFAULT, H5P_DEFAULT)), H5Aclose);
  check(H5Awrite(attribute.get(), type.get(), text.c_str()));
}

void write_column(hid_t file, const std::string& path, const std::vector<int64_t>& values, const Check& check) {
  const Id type(check(H5Tcopy(H5T_STD_I64LE)), H5Tclose);
  write_set(file, path, type, simple_space(values.size(), check), values.data(), check);
}

void write_text(hid_t file, const std::string& path, const std::string& text, const Check& check) {
  write_set(file, path, text_type(text.size(), check), Id(check(H5Screate(H5S_SCALAR)), H5Sclose), text.c_str(), check);
}

void write_texts(hid_t file, const std::string& path, const std::vector<std::string>& texts, const Check& check) {
  std::size_t width = 1;
  for (const std::string& text : texts) width = std::max(width, text.size());
  std::vector<char> block(width * texts.size());
  for (std::size_t i = 0; i < texts.size(); ++i) std::memcpy(block.data() + i * width, texts[i].data(), texts[i].size());
  write_set(file, path, text_type(width, check), simple_space(texts.size(), check), block.data(), check);
}

std::vector<int64_t> read_attribute(hid_t object, const char* name, const Check& check) {
  const Id attribute(check(H5Aopen(object, name, H5P_DEFAULT)), H5Aclose);
  const Id space(check(H5Aget_space(attribute.get())), H5Sclose);
  const int64_t count = check(H5Sget_simple_extent_npoints(space.get()));
  if (count > 1024) check.fail("an attribute is larger than nsp writes any");
  std::vector<int64_t> values(static_cast<std::size_t>(count));
  check(H5Aread(attribute.get(), H5T_NATIVE_INT64, values.data()));
  return values;
}

std::string read_text_attribute(hid_t object, const char* name, const Check& check) {
  const Id attribute(check(H5Aopen(object, name, H5P_DEFAULT)), H5Aclose);
  const Id type = fixed_text_type(H5Aget_type(attribute.get()), check);
  const Id space(check(H5Aget_space(attribute.get())), H5Sclose);
  const std::size_t bytes = H5Tget_size(type.get());
  if (check(H5Sget_simple_extent_npoints(space.get())) != 1 || bytes > 65536) check.fail("an attribute is larger than nsp writes any");
  std::vector<char> text(bytes);
  check(H5Aread(attribute.get(), type.get(), text.data()));
  return trimmed(text.data(), bytes);
}

std::vector<int64_t> read_column(hid_t file, const std::string& path, int64_t limit, const Check& check) {
  const Id set(check(H5Dopen2(file, path.c_str(), H5P_DEFAULT)), H5Dclose);
  std::vector<int64_t> values(static_cast<std::size_t>(bounded_count(set, sizeof(int64_t), limit, check)));
  check(H5Dread(set.get(), H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()));
  return values;
}

std::vector<std::string> read_texts(hid_t file, const std::string& path, int64_t limit, const Check& check) {
  const Id set(check(H5Dopen2(file, path.c_str(), H5P_DEFAULT)), H5Dclose);
  const Id type = fixed_text_type(H5Dget_type(set.get()), check);
  const std::size_t width = H5Tget_size(type.get());
  const auto count = static_cast<std::size_t>(bounded_count(set, width, limit, check));
  std::vector<char> block(width * count);
  check(H5Dread(set.get(), type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, block.data()));
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < count; ++i) texts.push_back(trimmed(block.data() + i * width, width));
  return texts;
}

std::string read_text(hid_t file, const std::string& path, int64_t limit, const Check& check) {
  const std::vector<std::string> texts = read_texts(file, path, limit, check);
  if (texts.size() != 1) check.fail("one text was expected in " + path);
  return texts.front();
}

}  // namespace nsp::h5
