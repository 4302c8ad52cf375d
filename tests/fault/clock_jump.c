/* Preloaded: the clock of the wall jumps 5 hours forward a second after the program's start, and 10 hours back a second later.
   Clocks that nobody sets are left alone. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <sys/time.h>
#include <time.h>

static int real_clock(clockid_t clock, struct timespec* t) {
  static int (*next)(clockid_t, struct timespec*);
  if (next == NULL) next = (int (*)(clockid_t, struct timespec*))dlsym(RTLD_NEXT, "clock_gettime");
  return next(clock, t);
}

static time_t jump(void) {
  static time_t start;
  struct timespec now;
  real_clock(CLOCK_MONOTONIC, &now);
  if (start == 0) start = now.tv_sec;
  const time_t age = now.tv_sec - start;
  return age < 1 ? 0 : age < 2 ? 5 * 3600 : -5 * 3600;
}

int clock_gettime(clockid_t clock, struct timespec* t) {
  const int result = real_clock(clock, t);
  if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) t->tv_sec += jump();
  return result;
}

time_t time(time_t* out) {
  struct timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  if (out != NULL) *out = t.tv_sec;
  return t.tv_sec;
}

int gettimeofday(struct timeval* restrict t, void* restrict zone) {
  struct timespec now;
  (void)zone;
  clock_gettime(CLOCK_REALTIME, &now);
  t->tv_sec = now.tv_sec;
  t->tv_usec = now.tv_nsec / 1000;
  return 0;
}
