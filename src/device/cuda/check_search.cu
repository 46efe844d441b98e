/* SPDX-License-Identifier: Apache-2.0 */
/* Neighbours and ranks against all scores in float64, sorted. */
#include "check.cuh"

/* The dot product of the library: 16 sums. */
static double exact(const float *a, const float *b, int64_t n) {
  double sum[16] = {0};
  for (int64_t k = 0; k < n; k++) sum[k % 16] += (double)a[k] * b[k];
  for (int o = 8; o > 0; o /= 2)
    for (int k = 0; k < o; k++) sum[k] += sum[k + o];
  return sum[0];
}

typedef struct hit {
  double score;
  int64_t id;
} hit;

static int by_score(const void *a, const void *b) {
  const hit *x = (const hit *)a, *y = (const hit *)b;
  if (x->score != y->score) return x->score < y->score ? 1 : -1;
  return x->id < y->id ? -1 : x->id > y->id;
}

static void check_nearest(gpu *g, const char *what, const floats &q, const floats &b, int64_t r,
                          int64_t ld, int64_t k, bool self) {
  const long mark = gpu_mark(g);
  const int64_t n = (int64_t)q.size() / ld, m = (int64_t)b.size() / ld, half = m / 3;
  numbers own, id((size_t)(n * k), -1);
  doubles score((size_t)(n * k), 0);
  for (int64_t i = 0; i < n; i++) own.push_back(self ? i * 7 % m + 1000 : -1);
  float *dq = put(g, q), *db = put(g, b);
  double *ds = put(g, score);
  int64_t *di = put(g, id), *dself = put(g, own);
  gpu_scores s = {dq, db, n, half, r, ld, ld, 1000, self ? dself : NULL};
  MUST(g, gpu_nearest(g, &s, k, ds, di));
  s.candidate = db + half * ld, s.candidates = m - half, s.number = 1000 + half;
  MUST(g, gpu_nearest(g, &s, k, ds, di));
  score = get(g, ds, score.size());
  id = get(g, di, id.size());
  int64_t wrong = 0;
  for (int64_t i = 0; i < n; i++) {
    std::vector<hit> all;
    for (int64_t j = 0; j < m; j++)
      if (j + 1000 != own[i]) all.push_back({exact(&q[i * ld], &b[j * ld], r), j + 1000});
    qsort(all.data(), all.size(), sizeof(hit), by_score);
    for (int64_t c = 0; c < k; c++) {
      const bool there = c < (int64_t)all.size();
      wrong += id[i * k + c] != (there ? all[c].id : -1);
      if (there) wrong += score[i * k + c] != all[c].score;
    }
  }
  char name[100];
  snprintf(name, sizeof name, "neighbours (%lld), %s: wrong", (long long)k, what);
  report(name, (double)wrong, 0);
  gpu_release(g, mark);
}

/* A candidate that is no number leaves the others as they are. */
static void check_nan(gpu *g, const floats &q, const floats &b, int64_t r, int64_t ld) {
  const long mark = gpu_mark(g);
  const int64_t n = (int64_t)q.size() / ld, m = (int64_t)b.size() / ld, k = 3;
  float *dq = put(g, q), *db = put(g, b);
  double *score = put(g, doubles((size_t)(n * k), 0));
  int64_t *id = put(g, numbers((size_t)(n * k), -1)), wrong = 0;
  const gpu_scores s = {dq, db, n, m, r, ld, ld, 0, NULL};
  MUST(g, gpu_nearest(g, &s, k, score, id));
  numbers seen = get(g, id, (size_t)(n * k));
  for (int64_t i = 0; i < n; i++) {
    hit best = {-INFINITY, -1};
    for (int64_t j = 0; j < m; j++) {
      const hit here = {exact(&q[i * ld], &b[j * ld], r), j};
      if (here.score > best.score) best = here;
    }
    wrong += seen[i * k] != best.id;
  }
  report("neighbours, a row that is no number: wrong", (double)wrong, 0);
  gpu_release(g, mark);
}

static void check_search(gpu *g) {
  const int64_t r = 40, ld = 41;
  floats q = normals(150 * ld, &check_seed), b = normals(9000 * ld, &check_seed);
  unit(q, ld), unit(b, ld);
  for (int64_t k : {1, 10, 100, 512}) check_nearest(g, "random", q, b, r, ld, k, k == 10);
  for (int64_t j = 3000; j < 9000; j++) /* many equals */
    memcpy(&b[j * ld], &b[(j % 50) * ld], (size_t)ld * 4);
  for (int64_t k : {1, 10, 200}) check_nearest(g, "many equal rows", q, b, r, ld, k, true);
  for (int64_t j = 0; j < 9000; j++) /* ever nearer to query 0 */
    for (int64_t c = 0; c < ld; c++) b[j * ld + c] = q[c] * (float)j / 9000 + .01f * b[j * ld + c];
  check_nearest(g, "ever nearer", q, b, r, ld, 10, false);
  b[5 * ld] = NAN; /* never found, and in nobody's way */
  check_nan(g, q, b, r, ld);
  b[5 * ld] = 0;
  for (auto &v : b) v *= 1000;
  check_nearest(g, "large rows", q, b, r, ld, 10, false);
  b.resize((size_t)(7 * ld));
  check_nearest(g, "fewer than asked for", q, b, r, ld, 10, true);
}

static void check_ranks(gpu *g, int64_t positives, bool equal, bool others) {
  const long mark = gpu_mark(g);
  const int64_t n = 170, m = 9000, r = 40;
  floats q = normals(n * r, &check_seed), b = normals(m * r, &check_seed);
  unit(q, r), unit(b, r);
  for (int64_t j = 100; equal && j < m; j += 2) memcpy(&b[j * r], &b[(j % 100) * r], (size_t)r * 4);
  numbers start(1, 0), hidden_start(1, 0), hidden, above, want, self;
  doubles threshold, top((size_t)n, -INFINITY), sum((size_t)n, 0), want_sum = sum, want_top = top;
  for (int64_t i = 0; i < n; i++) {
    std::vector<hit> own;
    for (int64_t c = 0; c < (i % 5 ? positives : 0); c++) {
      const int64_t j = (i * 31 + c * 97) % m;
      own.push_back({exact(&q[i * r], &b[j * r], r), j});
    }
    numbers columns;
    for (auto &h : own) columns.push_back(h.id);
    if (!own.empty())
      qsort(columns.data(), columns.size(), 8, [](const void *a, const void *c) {
        return (*(int64_t *)a > *(int64_t *)c) - (*(int64_t *)a < *(int64_t *)c);
      });
    for (int64_t j : columns) hidden.push_back(j + 5);
    hidden_start.push_back((int64_t)hidden.size());
    if (!own.empty()) qsort(own.data(), own.size(), sizeof(hit), by_score);
    for (auto &h : own) threshold.push_back(h.score);
    start.push_back((int64_t)threshold.size());
    self.push_back(i + 5 + 2000);
  }
  above.assign(threshold.size() + 1, 0);
  want = above;
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = 0; j < m && start[i] < start[i + 1]; j++) {
      bool out = j + 5 == self[i];
      for (int64_t k = hidden_start[i]; k < hidden_start[i + 1]; k++) out |= hidden[k] == j + 5;
      const double score = exact(&q[i * r], &b[j * r], r);
      if (out) continue;
      want_sum[i] += score;
      want_top[i] = fmax(want_top[i], score);
      for (int64_t k = start[i]; k < start[i + 1]; k++)
        if (score >= threshold[k]) {
          want[k]++;
          break;
        }
    }
  gpu_scores s = {put(g, q), put(g, b), n, m, r, r, r, 5, put(g, self)};
  int64_t *da = put(g, above);
  double *dt = put(g, top), *du = put(g, sum);
  const gpu_lists lists = {n, put(g, hidden_start), put(g, hidden), NULL};
  const gpu_ranked by = {
      put(g, threshold), da, others ? dt : NULL, others ? du : NULL, 0, NULL, NULL};
  MUST(g, gpu_ranks(g, &s, put(g, start), lists, &by, 1));
  above = get(g, da, above.size());
  double wrong = 0;
  for (size_t k = 0; k < above.size(); k++) wrong += above[k] != want[k];
  char name[80];
  snprintf(name, sizeof name, "ranks, %lld positives%s: wrong", (long long)positives,
           equal ? ", equal rows" : "");
  report(name, wrong, 0);
  if (!others) {
    gpu_release(g, mark);
    return;
  }
  doubles tops = get(g, dt, top.size());
  for (size_t i = 0; i < tops.size(); i++)
    if (isinf(tops[i]) && isinf(want_top[i])) tops[i] = want_top[i] = 0;
  report("  largest of the others", gap(tops, want_top), 1e-6);
  report("  sum of the others", gap(get(g, du, sum.size()), want_sum), 1e-5);
  gpu_release(g, mark);
}

/* By all columns and by all but the last, with lists: as each by itself, hidden ones and the query
 * itself left out, however large the last column is, and where a chunk offers more than has places. */
static void check_scales(gpu *g, float last, bool equal, float size) {
  const long mark = gpu_mark(g);
  const int64_t n = 150, m = 7000, r = 41, k = 10;
  floats q = normals(n * r, &check_seed), b = normals(m * r, &check_seed);
  unit(q, r), unit(b, r);
  for (auto &v : b) v *= size;
  for (int64_t j = 100; equal && j < m; j += 2) memcpy(&b[j * r], &b[(j % 100) * r], (size_t)r * 4);
  numbers start(1, 0), hidden, self;
  doubles threshold[2];
  for (int64_t i = 0; i < n; i++) q[i * r + r - 1] = 1;
  for (int64_t j = 0; j < m; j++) b[j * r + r - 1] = last * (float)((j % 100) * 37 % 101) / 100;
  for (int64_t i = 0; i < n; i++) {
    hidden.push_back(i * 31 % m);
    self.push_back((i * 57 + 1) % m);
    for (int by = 0; by < 2; by++)
      threshold[by].push_back(exact(&q[i * r], &b[hidden.back() * r], r - by));
    start.push_back(i + 1);
  }
  const gpu_scores s = {put(g, q), put(g, b), n, m, r, r, r, 0, put(g, self)};
  const gpu_lists lists = {n, put(g, start), put(g, hidden), NULL};
  gpu_ranked both[2], one[2];
  for (int by = 0; by < 2; by++) {
    gpu_scores alone = s;
    alone.width = r - by;
    for (gpu_ranked *to : {&both[by], &one[by]}) {
      *to = {put(g, threshold[by]),
             put(g, numbers((size_t)n, 0)),
             NULL,
             NULL,
             0,
             put(g, doubles((size_t)(n * k), 0)),
             put(g, numbers((size_t)(n * k), -1))};
    }
    both[by].k = k;
    MUST(g, gpu_ranks(g, &alone, put(g, start), lists, &one[by], 1));
    MUST(g, gpu_nearest(g, &alone, k, one[by].score, one[by].id));
  }
  MUST(g, gpu_ranks(g, &s, put(g, start), lists, both, 2));
  double wrong = 0;
  for (int by = 0; by < 2; by++) {
    wrong += get(g, both[by].above, (size_t)n) != get(g, one[by].above, (size_t)n);
    wrong += get(g, both[by].id, (size_t)(n * k)) != get(g, one[by].id, (size_t)(n * k));
  }
  char name[80];
  snprintf(name, sizeof name, "two scales, last column %g%s: differ", last,
           equal      ? ", equal rows"
           : size > 1 ? ", large rows"
                      : "");
  report(name, wrong, 0);
  gpu_release(g, mark);
}

/* What has no place in a bound: rows beyond float32, whose scores are all looked at, and halves too
 * small for float16. Hidden candidates stay hidden, and nothing behind the last is read. */
static void check_bounds(gpu *g) {
  const long mark = gpu_mark(g);
  const floats q = {1e20f, 0, 0, 0};
  floats b(9 * 4, 0);
  for (int64_t j = 0; j < 9; j++) b[(size_t)(4 * j)] = (float)(9 - j);
  const gpu_scores large = {put(g, q), put(g, b), 1, 9, 4, 4, 4, 0, NULL};
  int64_t *above = put(g, numbers{0});
  gpu_ranked by = {put(g, doubles{5e20}), above, NULL, NULL, 0, NULL, NULL};
  MUST(g, gpu_ranks(g, &large, put(g, numbers{0, 1}),
                    {1, put(g, numbers{0, 1}), put(g, numbers{0}), NULL}, &by, 1));
  report("ranks of a large row, one hidden: off by", fabs((double)get(g, above, 1)[0] - 4), 0);
  const gpu_scores small = {
      put(g, floats{1}), put(g, floats{0x1p-20f * (1 + 0x1p-14f)}), 1, 1, 1, 1, 1, 0, NULL};
  double *top = put(g, doubles{-INFINITY}), *sum = put(g, doubles{0});
  above = put(g, numbers{0});
  by = {put(g, doubles{0x1p-20 * (1 + 0x1p-15)}), above, top, sum, 0, NULL, NULL};
  MUST(g, gpu_ranks(g, &small, put(g, numbers{0, 1}), {1, NULL, NULL, NULL}, &by, 1));
  report("ranks of a short row: off by", fabs((double)get(g, above, 1)[0] - 1), 0);
  gpu_release(g, mark);
}

/* Rows are exact in float16, so the bounds of their scores are small. A product with a float16 result
 * must not be added in parts of float16 (`last` 0): halves of the rows nearly cancel, and rounded parts
 * would lose more. And what a tail takes away leaves the rounding of the product. */
static void check_rounding(gpu *g, float last) {
  const long mark = gpu_mark(g);
  const int64_t n = 16, m = 5000, r = 128, width = r + (last != 0);
  const double bar = .0625 + 0x1p-13; /* between numbers that rounded parts add up to */
  floats q((size_t)(n * width)), b((size_t)(m * width));
  for (int64_t c = 0; c < r; c++) q[c] = uniform(&check_seed) < .5 ? -1 / 16.f : 1 / 16.f;
  for (int64_t i = 1; i < n; i++)
    for (int64_t c = 0; c < r; c++) q[i * width + c] = c == i ? -q[c] : q[c];
  for (int64_t j = 0; j < m; j++)
    for (int64_t c = 0; c < r; c++)
      b[j * width + c] = (c < r / 2   ? 1.5f
                          : last != 0 ? 1
                                      : -1.25f) *
                             q[c] +
                         (float)floor(17 * uniform(&check_seed) - 8) * 0x1p-11f;
  for (int64_t i = 0; i < n && last != 0; i++) q[i * width + r] = 1;
  for (int64_t j = 0; j < m && last != 0; j++) b[j * width + r] = last;
  const gpu_scores s = {put(g, q), put(g, b), n, m, width, width, width, 0, NULL};
  numbers start(1, 0), want((size_t)n, 0);
  for (int64_t i = 0; i < n; i++) {
    start.push_back(i + 1);
    for (int64_t j = 0; j < m; j++)
      want[(size_t)i] += exact(&q[i * width], &b[j * width], width) >= bar;
  }
  gpu_ranked by[2];
  for (auto &k : by)
    k = {put(g, doubles((size_t)n, bar)), put(g, numbers((size_t)n, 0)), NULL, NULL, 0, NULL, NULL};
  MUST(g, gpu_ranks(g, &s, put(g, start), {n, NULL, NULL, NULL}, by, last != 0 ? 2 : 1));
  const numbers got = get(g, by[0].above, (size_t)n);
  double wrong = 0;
  for (size_t i = 0; i < got.size(); i++) wrong += got[i] != want[i];
  report(last != 0 ? "ranks of rounded products with a tail: wrong"
                   : "ranks by halves that cancel: wrong",
         wrong, 0);
  gpu_release(g, mark);
}

void check_searches(gpu *g) {
  check_search(g);
  for (int64_t positives : {1, 5, 12})
    for (int others = 0; others < 2; others++) check_ranks(g, positives, positives != 1, others);
  for (float last : {0.f, .3f, -5.f}) check_scales(g, last, false, 1);
  check_scales(g, .3f, true, 1);
  check_scales(g, .3f, false, 1000);
  check_bounds(g);
  check_rounding(g, 0);
  check_rounding(g, -.5625f);
}
