#include "core/data/survey.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

#include "core/data/document_reader.hpp"
#include "nsp/xxhash64.hpp"

namespace nsp {
namespace {

struct FileSurvey {
  FileContent content = FileContent::text;
  std::vector<uint64_t> hashes;  // of its documents
  int64_t empty_documents = 0, bytes = 0;
  std::exception_ptr failure;
};

FileSurvey survey_file(const std::string& path, const SurveyOptions& options, const std::function<void(int64_t)>& read) {
  FileSurvey out;
  out.content = content_of(path);
  if (out.content != FileContent::text) return out;
  XxHash64 hash(options.seed);
  bool any = false;
  const auto piece = [&](std::string_view text, bool ends) {
    hash.add(text.data(), text.size());
    any = any || !text.empty();
    if (!ends) return;
    if (any)
      out.hashes.push_back(hash.value());
    else
      ++out.empty_documents;
    hash = XxHash64(options.seed);
    any = false;
  };
  read_documents(path, options.text_key, piece, [&](std::size_t bytes) {
    out.bytes += static_cast<int64_t>(bytes);
    read(static_cast<int64_t>(bytes));
  });
  return out;
}

void append(const std::string& path, FileSurvey&& file, Survey& survey) {
  if (file.content != FileContent::text) {
    ++survey.skipped[file.content == FileContent::empty ? "empty files" : "binary files"];
    return;
  }
  if (file.empty_documents > 0) survey.skipped["empty documents"] += file.empty_documents;
  if (file.hashes.empty()) return;
  survey.files.push_back({path, static_cast<int64_t>(file.hashes.size()), file.bytes});
  survey.hashes.insert(survey.hashes.end(), file.hashes.begin(), file.hashes.end());
}

struct Ended {};  // thrown into a reader when the survey is given up

// Threads take the files in turn; the caller's thread only tells the meter.
class Readers {
 public:
  Readers(const std::vector<std::string>& files, const SurveyOptions& options) : files_(files), options_(options), found_(files.size()) {
    for (int i = 0; i < options.threads; ++i) threads_.emplace_back([this] { work(); });
  }
  ~Readers() {
    end_ = true;
    for (std::thread& thread : threads_) thread.join();
  }

  std::vector<FileSurvey> wait(ReadMeter& meter) {
    std::unique_lock lock(mutex_);
    while (idle_ < threads_.size()) {
      changed_.wait_for(lock, std::chrono::milliseconds(50));
      if (const int64_t bytes = read_.exchange(0); bytes > 0) meter.add(bytes);  // may throw
    }
    if (const int64_t bytes = read_.exchange(0); bytes > 0) meter.add(bytes);
    return std::move(found_);
  }

 private:
  void work() {
    // Files are taken in order, so those before one that fails are read to their end: the first failure is always the same.
    for (std::size_t i; !end_ && !failed_ && (i = next_++) < files_.size();) {
      try {
        found_[i] = survey_file(files_[i], options_, [this](int64_t bytes) {
          if (end_) throw Ended{};
          read_ += bytes;
        });
      } catch (const Ended&) {
        break;
      } catch (...) {
        found_[i].failure = std::current_exception();
        failed_ = true;
      }
    }
    const std::lock_guard lock(mutex_);
    ++idle_;
    changed_.notify_all();
  }

  const std::vector<std::string>& files_;
  const SurveyOptions& options_;
  std::vector<FileSurvey> found_;  // each written by the thread that took it
  std::atomic<std::size_t> next_{0};
  std::atomic<int64_t> read_{0};
  std::atomic<bool> end_{false}, failed_{false};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t idle_ = 0;  // threads that are done
  std::vector<std::thread> threads_;
};

}  // namespace

Survey survey_files(const std::vector<std::string>& files, const SurveyOptions& options, ReadMeter& meter) {
  Survey survey;
  if (options.threads <= 1) {
    for (const std::string& path : files) append(path, survey_file(path, options, [&](int64_t bytes) { meter.add(bytes); }), survey);
    return survey;
  }
  Readers readers(files, options);
  std::vector<FileSurvey> found = readers.wait(meter);
  for (FileSurvey& file : found)
    if (file.failure) std::rethrow_exception(file.failure);
  for (std::size_t i = 0; i < files.size(); ++i) append(files[i], std::move(found[i]), survey);
  return survey;
}

}  // namespace nsp
