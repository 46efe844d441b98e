/* SPDX-License-Identifier: Apache-2.0 */
/* The device: stream and libraries, memory that is kept and used again, copies, sentences. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels.cuh"

int gpu_fail(gpu *g, int code, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(g->error, sizeof g->error, format, arguments);
  va_end(arguments);
  return code;
}

/* Events of all devices that fail, for tests of the host (device.h). */
#ifdef UNICON_CUDA_FAULTS
static long hook_after;
static int hook_stays, hook_struck;

extern "C" __attribute__((visibility("default"))) long unicon__device_fault(long after, int stays) {
  const long left = hook_after;
  hook_after = after;
  hook_stays = stays;
  hook_struck = 0;
  return left;
}

static int hooked(void) {
  if (hook_struck && hook_stays) return 1;
  return hook_struck = hook_after > 0 && --hook_after == 0;
}

static int gone(void) {
  return hook_struck && hook_stays;
}
#else
static int hooked(void) {
  return 0;
}

static int gone(void) {
  return 0;
}
#endif

/* Is this the call that a test wants to fail? */
static int faulty(gpu *g) {
  return (g->fault > 0 && --g->fault == 0) || hooked();
}

int gpu_check(gpu *g, cudaError_t code, const char *what) {
  if (faulty(g)) code = cudaErrorLaunchFailure;
  if (code == cudaSuccess) return GPU_OK;
  cudaGetLastError(); /* one that can be got over is forgotten */
  if (code == cudaErrorMemoryAllocation)
    return gpu_fail(g, GPU_MEMORY, "the GPU has no memory left for %s", what);
  return gpu_fail(g, GPU_FAILED, "the GPU failed at %s: %s", what, cudaGetErrorString(code));
}

int gpu_check_blas(gpu *g, cublasStatus_t code, const char *what) {
  if (faulty(g)) code = CUBLAS_STATUS_EXECUTION_FAILED;
  if (code == CUBLAS_STATUS_SUCCESS) return GPU_OK;
  if (code == CUBLAS_STATUS_ALLOC_FAILED)
    return gpu_fail(g, GPU_MEMORY, "the GPU has no memory left for %s", what);
  return gpu_fail(g, GPU_FAILED, "the GPU failed at %s: cuBLAS says %s", what,
                  cublasGetStatusString(code));
}

int gpu_check_solver(gpu *g, cusolverStatus_t code, const char *what) {
  if (faulty(g)) code = CUSOLVER_STATUS_EXECUTION_FAILED;
  if (code == CUSOLVER_STATUS_SUCCESS) return GPU_OK;
  if (code == CUSOLVER_STATUS_ALLOC_FAILED)
    return gpu_fail(g, GPU_MEMORY, "the GPU has no memory left for %s", what);
  return gpu_fail(g, GPU_FAILED, "the GPU failed at %s: cuSOLVER returns status %d", what,
                  (int)code);
}

int gpu_launched(gpu *g, const char *what) {
  return gpu_check(g, cudaGetLastError(), what);
}

int gpu_sync(gpu *g, const char *what) {
  return gpu_check(g, cudaStreamSynchronize(g->stream), what);
}

/* Waits for what was asked so far, so that the host does not run far ahead, and asks the host. */
int gpu_poll(gpu *g) {
  if (!g->poll) return GPU_OK;
  GPU_TRY(gpu_sync(g, "waiting for a result"));
  return g->poll(g->user) ? GPU_CANCELLED : GPU_OK;
}

/* ---- opening -------------------------------------------------------------------------------- */

static int open_all(gpu *g, uint64_t limit) {
  size_t free_bytes = 0, total = 0;
  GPU_TRY(gpu_check(g, cudaGetDevice(&g->device), "choosing a device"));
  GPU_TRY(gpu_check(g, cudaMemGetInfo(&free_bytes, &total), "asking for its memory"));
  GPU_TRY(gpu_check(
      g, cudaDeviceGetAttribute(&g->processors, cudaDevAttrMultiProcessorCount, g->device),
      "asking for its processors"));
  GPU_TRY(gpu_check(g, cudaStreamCreateWithFlags(&g->stream, cudaStreamNonBlocking),
                    "creating a stream"));
  GPU_TRY(gpu_check_blas(g, cublasCreate(&g->blas), "starting cuBLAS"));
  GPU_TRY(gpu_check_blas(g, cublasSetStream(g->blas, g->stream), "starting cuBLAS"));
  /* parts of a float16 result are added in float32: the bound of the search counts one rounding */
  const int exact = CUBLAS_DEFAULT_MATH | CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION;
  GPU_TRY(gpu_check_blas(g, cublasSetMathMode(g->blas, (cublasMath_t)exact), "starting cuBLAS"));
  GPU_TRY(gpu_check_solver(g, cusolverDnCreate(&g->solver), "starting cuSOLVER"));
  GPU_TRY(gpu_check_solver(g, cusolverDnSetStream(g->solver, g->stream), "starting cuSOLVER"));
  GPU_TRY(gpu_check_solver(g, cusolverDnCreateParams(&g->solver_params), "starting cuSOLVER"));
  for (int k = 0; k < 2; k++) {
    GPU_TRY(gpu_check(g, cudaMallocHost(&g->pinned[k], GPU_PINNED), "room for copies"));
    GPU_TRY(gpu_check(g, cudaEventCreateWithFlags(&g->copied[k], cudaEventDisableTiming),
                      "creating an event"));
  }
  const uint64_t most = free_bytes > GPU_SPARE ? free_bytes - GPU_SPARE : free_bytes;
  g->limit = limit > 0 && limit < most ? limit : most;
  return GPU_OK;
}

int gpu_open(gpu *g, uint64_t limit, char *text, size_t size) {
  memset(g, 0, sizeof *g);
  const int code = open_all(g, limit);
  if (code == GPU_OK) return code;
  snprintf(text, size, "%s", g->error);
  gpu_close(g);
  return code;
}

void gpu_close(gpu *g) {
  for (int k = 0; k < g->blocks; k++) cudaFree(g->block[k].data);
  free(g->block);
  for (int k = 0; k < 2; k++) {
    if (g->pinned[k]) cudaFreeHost(g->pinned[k]);
    if (g->copied[k]) cudaEventDestroy(g->copied[k]);
  }
  if (g->solver_params) cusolverDnDestroyParams(g->solver_params);
  if (g->solver) cusolverDnDestroy(g->solver);
  if (g->blas) cublasDestroy(g->blas);
  if (g->stream) cudaStreamDestroy(g->stream);
  memset(g, 0, sizeof *g);
}

/* ---- memory --------------------------------------------------------------------------------- */

long gpu_mark(const gpu *g) {
  return g->takes;
}

static void give(gpu *g, gpu_block *block) {
  block->taken = 0;
  g->used -= block->size;
}

void gpu_release(gpu *g, long mark) {
  for (int k = 0; k < g->blocks; k++)
    if (g->block[k].taken > mark) give(g, &g->block[k]);
}

void gpu_give(gpu *g, void *data) {
  for (int k = 0; data && k < g->blocks; k++)
    if (g->block[k].data == data && g->block[k].taken) give(g, &g->block[k]);
  if (g->used == 0 && g->held > GPU_KEPT) gpu_trim(g); /* an idle device leaves it to others */
}

/* Others may have taken memory since the device was opened. */
uint64_t gpu_left(const gpu *g) {
  size_t now = 0, total = 0;
  const uint64_t left = g->used < g->limit ? g->limit - g->used : 0;
  if (cudaMemGetInfo(&now, &total) != cudaSuccess) {
    cudaGetLastError();
    return left;
  }
  const uint64_t room = now + (g->held - g->used);
  const uint64_t there = room > GPU_SPARE ? room - GPU_SPARE : 0;
  return left < there ? left : there;
}

void gpu_trim(gpu *g) {
  int kept = 0;
  for (int k = 0; k < g->blocks; k++) {
    if (g->block[k].taken) {
      g->block[kept++] = g->block[k];
      continue;
    }
    cudaFree(g->block[k].data); /* waits for the device */
    g->held -= g->block[k].size;
  }
  g->blocks = kept;
}

/* The smallest free block that serves without much waste. */
static gpu_block *find_free(gpu *g, size_t bytes) {
  gpu_block *best = NULL;
  for (int k = 0; k < g->blocks; k++) {
    gpu_block *b = &g->block[k];
    if (b->taken || b->size < bytes || b->size > bytes + bytes / 4 + 65536) continue;
    if (!best || b->size < best->size) best = b;
  }
  return best;
}

static int more_places(gpu *g) {
  if (g->blocks < g->room) return GPU_OK;
  const int room = g->room > 0 ? 2 * g->room : 64;
  gpu_block *block = (gpu_block *)realloc(g->block, (size_t)room * sizeof *block);
  if (!block) return gpu_fail(g, GPU_MEMORY, "the host has no memory left for a list");
  g->block = block;
  g->room = room;
  return GPU_OK;
}

static int take_new(gpu *g, size_t bytes, gpu_block **out) {
  void *data = NULL;
  if (g->held + bytes > g->limit) gpu_trim(g);
  if (g->held + bytes > g->limit)
    return gpu_fail(g, GPU_MEMORY,
                    "%.1f MB of GPU memory were asked for, and %.1f of at most %.1f MB are left",
                    1e-6 * (double)bytes, 1e-6 * (double)gpu_left(g), 1e-6 * (double)g->limit);
  GPU_TRY(more_places(g));
  if (cudaMalloc(&data, bytes) != cudaSuccess) {
    cudaGetLastError();
    gpu_trim(g);
    GPU_TRY(gpu_check(g, cudaMalloc(&data, bytes), "a matrix"));
  }
  g->block[g->blocks] = (gpu_block){data, bytes, 0};
  *out = &g->block[g->blocks++];
  g->held += bytes;
  if (g->held > g->peak) g->peak = g->held;
  return GPU_OK;
}

int gpu_take(gpu *g, size_t bytes, void **out) {
  bytes = ((bytes > 0 ? bytes : 1) + 511) / 512 * 512;
  *out = NULL;
  if (faulty(g))
    return gone() ? gpu_fail(g, GPU_FAILED, "the GPU does not answer")
                  : gpu_fail(g, GPU_MEMORY, "the GPU has no memory left for a matrix");
  gpu_block *block = find_free(g, bytes);
  if (!block) GPU_TRY(take_new(g, bytes, &block));
  block->taken = ++g->takes;
  g->used += block->size;
  *out = block->data;
  return GPU_OK;
}

/* ---- copies --------------------------------------------------------------------------------- */

/* Between host memory and a pinned buffer. */
static void copy_rows(gpu *g, void *to, int64_t to_stride, const void *from, int64_t from_stride,
                      int64_t bytes, int64_t rows) {
  if (g->copy) {
    g->copy(g->user, to, to_stride, from, from_stride, bytes, rows);
    return;
  }
  for (int64_t i = 0; i < rows; i++)
    memcpy((char *)to + i * to_stride, (const char *)from + i * from_stride, (size_t)bytes);
}

/* Pieces of whole rows through two pinned buffers: one is filled while the other travels. */
int gpu_upload(gpu *g, void *to, const void *from, size_t row_bytes, int64_t rows, int64_t stride) {
  if (row_bytes == 0 || rows == 0) return GPU_OK;
  const char *source = (const char *)from;
  char *target = (char *)to;
  const bool dense = stride == (int64_t)row_bytes;
  const size_t total = row_bytes * (size_t)rows;
  if (!dense && row_bytes > GPU_PINNED) { /* a long row at a time */
    for (int64_t i = 0; i < rows; i++)
      GPU_TRY(gpu_upload(g, target + (size_t)i * row_bytes, source + i * stride, row_bytes, 1,
                         (int64_t)row_bytes));
    return GPU_OK;
  }
  const size_t piece = dense ? (size_t)GPU_PINNED : GPU_PINNED / row_bytes * row_bytes;
  int turn = 0;
  for (size_t done = 0; done < total; done += piece, turn ^= 1) {
    const size_t now = total - done < piece ? total - done : piece;
    char *buffer = (char *)g->pinned[turn];
    GPU_TRY(gpu_check(g, cudaEventSynchronize(g->copied[turn]), "waiting for a copy"));
    if (dense)
      copy_rows(g, buffer, (int64_t)now, source + done, (int64_t)now, (int64_t)now, 1);
    else
      copy_rows(g, buffer, (int64_t)row_bytes, source + (int64_t)(done / row_bytes) * stride,
                stride, (int64_t)row_bytes, (int64_t)(now / row_bytes));
    GPU_TRY(
        gpu_check(g, cudaMemcpyAsync(target + done, buffer, now, cudaMemcpyHostToDevice, g->stream),
                  "copying to the GPU"));
    GPU_TRY(gpu_check(g, cudaEventRecord(g->copied[turn], g->stream), "copying to the GPU"));
  }
  return GPU_OK;
}

/* Rows that wait in a pinned buffer. */
typedef struct waiting {
  int64_t first, count;
} waiting;

static int fetch_rows(gpu *g, int turn, char *to, int64_t row, int64_t stride, waiting *w) {
  if (w->count == 0) return GPU_OK;
  GPU_TRY(gpu_check(g, cudaEventSynchronize(g->copied[turn]), "copying from the GPU"));
  if (stride == row)
    copy_rows(g, to + w->first * row, row * w->count, g->pinned[turn], row * w->count,
              row * w->count, 1);
  else
    copy_rows(g, to + w->first * stride, stride, g->pinned[turn], row, row, w->count);
  w->count = 0;
  return GPU_OK;
}

int gpu_download_rows(gpu *g, void *to, const void *from, size_t row_bytes, int64_t rows,
                      int64_t stride) {
  const int64_t row = (int64_t)row_bytes, piece = row > 0 ? GPU_PINNED / row : 0;
  waiting w[2] = {};
  int turn = 0;
  if (row > GPU_PINNED) /* a long row at a time */
    for (int64_t i = 0; i < rows; i++)
      GPU_TRY(gpu_download(g, (char *)to + i * stride, (const char *)from + i * row, row_bytes));
  for (int64_t first = 0; piece > 0 && first < rows; first += piece, turn ^= 1) {
    GPU_TRY(fetch_rows(g, turn, (char *)to, row, stride, &w[turn]));
    w[turn] = {first, gpu_least(piece, rows - first)};
    GPU_TRY(
        gpu_check(g,
                  cudaMemcpyAsync(g->pinned[turn], (const char *)from + first * row,
                                  (size_t)(w[turn].count * row), cudaMemcpyDeviceToHost, g->stream),
                  "copying from the GPU"));
    GPU_TRY(gpu_check(g, cudaEventRecord(g->copied[turn], g->stream), "copying from the GPU"));
  }
  for (int k = 0; k < 2; k++, turn ^= 1)
    GPU_TRY(fetch_rows(g, turn, (char *)to, row, stride, &w[turn]));
  return gpu_sync(g, "copying from the GPU");
}

int gpu_download(gpu *g, void *to, const void *from, size_t bytes) {
  const int64_t unit = 4096, whole = (int64_t)bytes / unit; /* much: pages, and a rest */
  const int64_t rest = (int64_t)bytes - whole * unit;
  if (bytes <= (size_t)GPU_PINNED) return gpu_download_rows(g, to, from, bytes, 1, (int64_t)bytes);
  GPU_TRY(gpu_download_rows(g, to, from, (size_t)unit, whole, unit));
  return gpu_download_rows(g, (char *)to + whole * unit, (const char *)from + whole * unit,
                           (size_t)rest, 1, rest);
}
