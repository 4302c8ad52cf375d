// Flushing of denormal numbers in the calling thread. Decaying moments would otherwise drift into denormals, where
// one operation costs a hundred cycles (the step time then grows for hours).
#pragma once

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace nsp::cpu {

inline void flush_denormals() noexcept {
#if defined(__x86_64__)
  constexpr unsigned kFlushToZero = 0x8000, kDenormalsAreZero = 0x0040;
  _mm_setcsr(_mm_getcsr() | kFlushToZero | kDenormalsAreZero);
#elif defined(__aarch64__)
  unsigned long control;
  __asm__ volatile("mrs %0, fpcr" : "=r"(control));
  __asm__ volatile("msr fpcr, %0" : : "r"(control | (1UL << 24)));
#endif
}

}  // namespace nsp::cpu
