/* SPDX-License-Identifier: Apache-2.0 */
/* The emulated GPU: fibers, barriers, warps; streams, memory, the device. */
#include "emulated.h"

#include <stdio.h>
#include <stdlib.h>

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#define EMULATED_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define EMULATED_ASAN 1
#endif
#endif
#ifdef EMULATED_ASAN
#include <sanitizer/common_interface_defs.h>
#endif

#ifndef __x86_64__
#error "the emulated GPU switches between fibers on x86-64 alone"
#endif

/* Keeps what a call keeps on the stack that runs, notes where, and goes on on the other. */
extern "C" void emulated_switch(void **from, void *to);
asm(R"(
.text
.type emulated_switch, @function
emulated_switch:
  push %rbp
  push %rbx
  push %r12
  push %r13
  push %r14
  push %r15
  mov %rsp, (%rdi)
  mov %rsi, %rsp
  pop %r15
  pop %r14
  pop %r13
  pop %r12
  pop %rbx
  pop %rbp
  ret
.size emulated_switch, . - emulated_switch
.section .note.GNU-stack, "", @progbits
.text
)");

thread_local emulated_place emulated_here;

namespace {

/* ---- fibers --------------------------------------------------------------------------------- */

enum { STACK = 128 << 10, MOST_THREADS = 1024, LANES = 32 };

struct meeting { /* of the threads of a block, or of a warp */
  int arrived = 0;
  long round = 0;
};

struct warp {
  meeting at;
  int lanes = 0, left = 0; /* that exist; that have ended */
  const char *kind = nullptr;
  alignas(8) char value[2][8 * LANES];
};

struct fiber {
  void *context;
  std::unique_ptr<char[]> stack{new char[STACK]};
  emulated_place place;
  const meeting *waits = nullptr;
  long round = 0;
  bool over = false;
#ifdef EMULATED_ASAN
  void *fake = nullptr;
#endif
};

struct machine { /* of a host thread: what runs now */
  const char *name = "";
  const std::function<void()> *body = nullptr;
  int threads = 0, started = 0, ended = 0;
  bool reverse = false;
  meeting all;
  warp warps[MOST_THREADS / LANES];
  std::vector<char> shared;
  std::vector<std::unique_ptr<fiber>> idle, waiting;
  fiber *now = nullptr;
  void *scheduler;
#ifdef EMULATED_ASAN
  void *fake = nullptr;
  const void *bottom = nullptr;
  size_t size = 0;
#endif
};

thread_local machine m;

[[noreturn]] void die(const char *why) {
  fprintf(stderr, "emulated GPU: kernel %s, block %u %u, thread %u: %s\n", m.name,
          emulated_here.block.x, emulated_here.block.y, emulated_here.thread.x, why);
  abort();
}

warp &own_warp() {
  const auto &b = emulated_here.block_shape;
  const auto &t = emulated_here.thread;
  return m.warps[(t.x + b.x * (t.y + b.y * t.z)) / LANES];
}

/* From a fiber to the scheduler, and back. */
void leave() {
  fiber *f = m.now;
  f->place = emulated_here;
#ifdef EMULATED_ASAN
  __sanitizer_start_switch_fiber(&f->fake, m.bottom, m.size);
#endif
  emulated_switch(&f->context, m.scheduler);
#ifdef EMULATED_ASAN
  __sanitizer_finish_switch_fiber(f->fake, &m.bottom, &m.size);
#endif
  emulated_here = f->place;
}

void resume(fiber *f) {
  m.now = f;
#ifdef EMULATED_ASAN
  __sanitizer_start_switch_fiber(&m.fake, f->stack.get(), STACK);
#endif
  emulated_switch(&m.scheduler, f->context);
#ifdef EMULATED_ASAN
  __sanitizer_finish_switch_fiber(m.fake, nullptr, nullptr);
#endif
  m.now = nullptr;
}

void close_round(meeting *at) {
  at->arrived = 0;
  at->round++;
}

/* A thread has ended: those who wait at a barrier wait for one less. */
void end_thread() {
  m.ended++;
  own_warp().left++;
  if (m.all.arrived > 0 && m.all.arrived == m.threads - m.ended) close_round(&m.all);
}

/* A fiber takes threads that have not begun, one after another, until one of them waits. */
void run_threads() {
#ifdef EMULATED_ASAN
  __sanitizer_finish_switch_fiber(nullptr, &m.bottom, &m.size);
#endif
  while (m.started < m.threads) {
    const int number = m.reverse ? m.threads - 1 - m.started : m.started;
    const dim3 &b = emulated_here.block_shape;
    m.started++;
    emulated_here.thread = {(unsigned)number % b.x, (unsigned)number / b.x % b.y,
                            (unsigned)number / b.x / b.y};
    (*m.body)();
    end_thread();
  }
  fiber *f = m.now;
  f->over = true;
#ifdef EMULATED_ASAN
  __sanitizer_start_switch_fiber(nullptr, m.bottom, m.size);
#endif
  emulated_switch(&f->context, m.scheduler);
}

std::unique_ptr<fiber> new_fiber() {
  std::unique_ptr<fiber> f;
  if (m.idle.empty()) {
    f.reset(new fiber);
  } else {
    f = std::move(m.idle.back());
    m.idle.pop_back();
  }
  f->over = false;
  f->waits = nullptr;
  /* six registers, where to go, and an address as if it had been called: the stack is then as far
   * from a multiple of 16 as a function expects */
  void **top = (void **)((uintptr_t)(f->stack.get() + STACK) / 16 * 16) - 8;
  memset(top, 0, 8 * sizeof *top);
  top[6] = (void *)run_threads;
  f->context = top;
  return f;
}

bool ready(const fiber &f) {
  return f.waits->round != f.round;
}

/* Lets fibers that may go on do so, in order; false: none could. */
bool go_round() {
  bool moved = false;
  std::vector<std::unique_ptr<fiber>> list;
  list.swap(m.waiting);
  for (auto &f : list) {
    if (ready(*f)) {
      resume(f.get());
      moved = true;
    }
    (f->over ? m.idle : m.waiting).push_back(std::move(f));
  }
  return moved;
}

void run_block(const emulated_shape &shape, uint3 block) {
  m.started = m.ended = 0;
  m.all = meeting();
  for (int k = 0; k * LANES < m.threads; k++) {
    m.warps[k].at = meeting();
    m.warps[k].left = 0;
    m.warps[k].lanes = m.threads - k * LANES < LANES ? m.threads - k * LANES : LANES;
  }
  emulated_here.block = block;
  emulated_here.block_shape = shape.block;
  emulated_here.grid_shape = shape.grid;
  while (m.started < m.threads) {
    std::unique_ptr<fiber> f = new_fiber();
    resume(f.get());
    (f->over ? m.idle : m.waiting).push_back(std::move(f));
  }
  while (!m.waiting.empty()) {
    emulated_here = m.waiting[0]->place;
    if (!go_round()) die("it waits for threads that have ended");
  }
}

void run_kernel(const char *name, const emulated_shape &shape, const std::function<void()> &body) {
  const char *order = getenv("EMULATED_ORDER");
  m.name = name;
  m.body = &body;
  m.threads = (int)(shape.block.x * shape.block.y * shape.block.z);
  m.reverse = order && strcmp(order, "reverse") == 0;
  m.shared.assign(shape.shared, (char)0xff);
  for (unsigned z = 0; z < shape.grid.z; z++)
    for (unsigned y = 0; y < shape.grid.y; y++)
      for (unsigned x = 0; x < shape.grid.x; x++) run_block(shape, {x, y, z});
}

/* Waits until a meeting's round is over. */
void wait_for(meeting *at, int wanted) {
  const long round = at->round;
  if (++at->arrived == wanted) {
    close_round(at);
    return;
  }
  m.now->waits = at;
  m.now->round = round;
  leave();
}

}  // namespace

void *emulated_shared(void) {
  return m.shared.data();
}

bool emulated_lane_exists(int lane) {
  return lane < own_warp().lanes;
}

void emulated_barrier(void) {
  wait_for(&m.all, m.threads - m.ended);
}

const char *emulated_exchange(unsigned mask, const char *kind, const void *value, size_t bytes) {
  warp &w = own_warp();
  char *all = w.value[w.at.round & 1];
  if (mask != ~0u) die("a warp operation of some lanes");
  if (w.left > 0) die("a warp operation that some lanes of the warp do not reach: they have ended");
  if (w.at.arrived > 0 && w.kind != kind && strcmp(w.kind, kind) != 0)
    die("lanes of a warp are at different operations");
  w.kind = kind;
  memcpy(all + 8 * emulated_lane(), value, bytes);
  wait_for(&w.at, w.lanes);
  return all;
}

/* ---- streams and events --------------------------------------------------------------------- */

struct CUstream_st {
  std::deque<std::function<void()>> queue;
  long asked = 0, done = 0;
};

struct CUevent_st {
  cudaStream_t stream = nullptr;
  long place = 0;
};

namespace {

std::mutex lock; /* of the list of memory: open devices are in the hands of several threads */
std::map<char *, size_t> memory;
thread_local std::vector<cudaStream_t> streams; /* that this thread has made, and uses */
thread_local cudaError_t last = cudaSuccess;

cudaError_t said(cudaError_t code) {
  if (code != cudaSuccess) last = code;
  return code;
}

void drain(cudaStream_t s, long until) {
  while (s->done < until) {
    const std::function<void()> body = std::move(s->queue.front());
    s->queue.pop_front();
    s->done++;
    body();
  }
}

/* What frees memory waits for the device. */
void drain_all(void) {
  for (cudaStream_t s : streams) drain(s, s->asked);
}

bool fits(const emulated_shape &s) {
  const dim3 &g = s.grid, &b = s.block;
  return g.x > 0 && g.y > 0 && g.z > 0 && b.x > 0 && b.y > 0 && b.z > 0 && g.x <= 0x7fffffffu &&
         g.y <= 65535 && g.z <= 65535 && b.z <= 64 && b.x * b.y * b.z <= MOST_THREADS &&
         s.shared <= 48 << 10;
}

}  // namespace

void emulated_enqueue(cudaStream_t stream, std::function<void()> body) {
  if (!stream) {
    body();
    return;
  }
  stream->queue.push_back(std::move(body));
  stream->asked++;
}

void emulated_launch(const char *name, const emulated_shape &shape, std::function<void()> body) {
  if (!fits(shape)) {
    fprintf(stderr,
            "emulated GPU: kernel %s: %u x %u x %u blocks of %u x %u x %u threads, %zu bytes\n",
            name, shape.grid.x, shape.grid.y, shape.grid.z, shape.block.x, shape.block.y,
            shape.block.z, shape.shared);
    said(cudaErrorInvalidConfiguration);
    return;
  }
  emulated_enqueue(shape.stream, [name, shape, body] { run_kernel(name, shape, body); });
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned) {
  *out = new CUstream_st;
  streams.push_back(*out);
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t s) {
  drain(s, s->asked);
  streams.erase(std::remove(streams.begin(), streams.end(), s), streams.end());
  delete s;
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t s) {
  if ((uintptr_t)s > 2) drain(s, s->asked); /* 1 and 2: the default streams */
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned) {
  *out = new CUevent_st;
  return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t *out) {
  return cudaEventCreateWithFlags(out, 0);
}

cudaError_t cudaEventDestroy(cudaEvent_t e) {
  delete e;
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s) {
  e->stream = s;
  e->place = s ? s->asked : 0;
  return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t e) {
  if (e->stream) drain(e->stream, e->place);
  return cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t, cudaEvent_t) {
  *ms = 0;
  return cudaSuccess;
}

/* ---- memory --------------------------------------------------------------------------------- */

enum { ROOM_MB = 4096 };

/* Full of NaN. */
cudaError_t cudaMalloc(void **out, size_t bytes) {
  *out = nullptr;
  if (bytes > (size_t)ROOM_MB << 20 || posix_memalign(out, 512, bytes ? bytes : 1) != 0)
    return said(cudaErrorMemoryAllocation);
  memset(*out, 0xff, bytes);
  const std::lock_guard<std::mutex> guard(lock);
  memory[(char *)*out] = bytes;
  return cudaSuccess;
}

cudaError_t cudaFree(void *data) {
  if (!data) return cudaSuccess;
  drain_all();
  {
    const std::lock_guard<std::mutex> guard(lock);
    if (memory.erase((char *)data) == 0) return said(cudaErrorInvalidValue);
  }
  free(data);
  return cudaSuccess;
}

cudaError_t cudaMallocHost(void **out, size_t bytes) {
  *out = malloc(bytes);
  return *out ? cudaSuccess : said(cudaErrorMemoryAllocation);
}

cudaError_t cudaFreeHost(void *data) {
  drain_all();
  free(data);
  return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t *left, size_t *total) {
  *left = *total = (size_t)ROOM_MB << 20;
  return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *out, const void *data) {
  const std::lock_guard<std::mutex> guard(lock);
  *out = {};
  auto after = memory.upper_bound((char *)data);
  if (after == memory.begin()) return cudaSuccess;
  --after;
  if ((const char *)data < after->first + after->second) out->type = cudaMemoryTypeDevice;
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind,
                            cudaStream_t s) {
  emulated_enqueue(s, [=] { memcpy(to, from, bytes); });
  return cudaSuccess;
}

cudaError_t cudaMemcpy2DAsync(void *to, size_t to_stride, const void *from, size_t from_stride,
                              size_t bytes, size_t rows, cudaMemcpyKind, cudaStream_t s) {
  if (bytes > to_stride || bytes > from_stride) return said(cudaErrorInvalidPitchValue);
  emulated_enqueue(s, [=] {
    for (size_t i = 0; i < rows; i++)
      memcpy((char *)to + i * to_stride, (const char *)from + i * from_stride, bytes);
  });
  return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t s) {
  emulated_enqueue(s, [=] { memset(to, value, bytes); });
  return cudaSuccess;
}

/* ---- the device ----------------------------------------------------------------------------- */

cudaError_t cudaGetDeviceCount(int *out) {
  *out = 1;
  return cudaSuccess;
}

cudaError_t cudaGetDevice(int *out) {
  *out = 0;
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int) {
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *out, int) {
  memset(out, 0, sizeof *out);
  snprintf(out->name, sizeof out->name, "emulated GPU");
  out->major = 9;
  out->multiProcessorCount = 4;
  out->totalGlobalMem = (size_t)ROOM_MB << 20;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *out, cudaDeviceAttr, int) {
  *out = 4; /* processors */
  return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *out) {
  *out = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *out) {
  *out = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaGetLastError(void) {
  const cudaError_t code = last;
  last = cudaSuccess;
  return code;
}

const char *cudaGetErrorString(cudaError_t code) {
  return code == cudaErrorMemoryAllocation       ? "out of memory"
         : code == cudaErrorInvalidConfiguration ? "invalid configuration argument"
                                                 : "an error";
}
