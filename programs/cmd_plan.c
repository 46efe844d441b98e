/* SPDX-License-Identifier: Apache-2.0 */
/* unicon plan X Y */
#include "inputs.h"

static int print_json(tool *t, const unicon_plan_result *plan) {
  json_t *out =
      json_pack("{s:I, s:I, s:I, s:I, s:f, s:f, s:s}", "memory", (json_int_t)plan->memory,
                "reads_x", (json_int_t)plan->reads[0], "reads_y", (json_int_t)plan->reads[1],
                "plane_sweeps", (json_int_t)plan->plane_sweeps, "flops", plan->flops, "seconds",
                plan->seconds, "advice", plan->advice);
  return display_json(out) ? EXIT_DONE : tool_out_of_memory(t);
}

static int print_plan(const inputs *in, const unicon_plan_result *plan) {
  char time[32], memory[32];
  printf("x                %lld rows of %lld numbers, read %lld times\n",
         (long long)unicon_rows_count(in->x), (long long)unicon_rows_width(in->x),
         (long long)plan->reads[0]);
  printf("y                %lld rows of %lld numbers, read %lld times\n",
         (long long)unicon_rows_count(in->y), (long long)unicon_rows_width(in->y),
         (long long)plan->reads[1]);
  printf("sweeps           %lld over all pairs of rows\n", (long long)plan->plane_sweeps);
  printf("memory           about %s, beside the mapped files and 64 MB for BLAS and code\n",
         display_bytes((double)plan->memory, memory, sizeof memory));
  printf("time             about %s (%.3g billion operations)\n",
         display_time(plan->seconds, time, sizeof time), plan->flops / 1e9);
  printf("advice           %s\n", plan->advice);
  return EXIT_DONE;
}

int cmd_plan(tool *t) {
  inputs in = {0};
  unicon_plan_result plan;
  int code = inputs_check_options(t);
  if (code == EXIT_DONE)
    code = inputs_open(t, t->args->positional[0], t->args->positional[1], INPUTS_MAIN, &in);
  if (code == EXIT_DONE) {
    const unicon_data data = {in.x, in.y, in.pairs, NULL};
    const unicon_status status = unicon_plan(t->ctx, &data, t->options, &plan);
    if (status != UNICON_OK)
      code = tool_fail(t, status);
    else
      code = tool_has(t, CLI_OPT_JSON) ? print_json(t, &plan) : print_plan(&in, &plan);
  }
  inputs_close(&in);
  return code;
}
