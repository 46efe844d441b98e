/* SPDX-License-Identifier: Apache-2.0 */
/* unicon plan X Y, unicon plan --from ALL.stats */
#include <string.h>

#include "flags.h"
#include "inputs.h"
#include "summed.h"

static void print_side(char side, const unicon_rows *rows, double reads) {
  char shape[80];
  printf("%c                %s, read %.0f time%s\n", side,
         display_shape(unicon_rows_count(rows), unicon_rows_width(rows), shape, sizeof shape),
         reads, reads == 1 ? "" : "s");
}

/* What the same rows are as statistics. */
static void print_sums(const unicon_result *plan) {
  char time[32], memory[32], file[32];
  const double bytes = display_number(plan, "statistics", "bytes");
  if (!(bytes > 0)) return;
  printf("statistics       `unicon stats` would take about %s and %s; the file has about %s\n",
         display_time(display_number(plan, "statistics", "seconds"), time, sizeof time),
         display_bytes(display_number(plan, "statistics", "memory"), memory, sizeof memory),
         display_bytes(bytes, file, sizeof file));
}

static int print_plan(const tool *t, const inputs *in, const unicon_result *plan) {
  char time[32], memory[32], machine[32], advice[512];
  const char *device = unicon_result_text(plan, "device");
  if (in->x) {
    print_side('x', in->x, display_number(plan, "", "reads_x"));
    print_side('y', in->y, display_number(plan, "", "reads_y"));
    printf("sweeps           %.0f over all pairs of rows\n",
           display_number(plan, "", "plane_sweeps"));
  }
  printf("memory           about %s of %s, beside the mapped files and 64 MB for BLAS and code\n",
         display_bytes(display_number(plan, "", "memory"), memory, sizeof memory),
         display_bytes(display_number(plan, "", "machine_memory"), machine, sizeof machine));
  const double billions = display_number(plan, "", "flops") / 1e9;
  printf("time             about %s (%.*f billion operations)%s%s%s\n",
         display_time(display_number(plan, "", "seconds"), time, sizeof time),
         billions < 10 ? 2 : 0, billions, strcmp(device, "cpu") == 0 ? "" : " on the CPU; device ",
         strcmp(device, "cpu") == 0 ? "" : device,
         strcmp(device, "cpu") == 0 ? "" : " will do the stages it has, faster");
  print_sums(plan);
  flags_in(t->args, unicon_result_text(plan, "advice"), advice, sizeof advice);
  printf("advice           %s\n", advice);
  return EXIT_DONE;
}

static unicon_status make(tool *t, const inputs *in, const unicon_stats *stats,
                          unicon_result **plan) {
  const unicon_data data = UNICON_DATA(.x = in->x, .y = in->y, .pairs = in->pairs);
  return stats ? unicon_stats_plan(t->ctx, stats, t->options, plan)
               : unicon_plan(t->ctx, &data, t->options, plan);
}

int cmd_plan(tool *t) {
  const char *const *path = t->args->positional;
  inputs in = {0};
  unicon_stats *stats = NULL;
  unicon_result *plan = NULL;
  int code = summed_check_sources(t);
  if (code == EXIT_DONE) code = inputs_check_options(t);
  if (code == EXIT_DONE)
    code = path[0] ? inputs_open(t, path[0], path[1], INPUTS_MAIN, &in)
                   : summed_open(t, tool_value(t, CLI_OPT_FROM), &stats);
  if (code == EXIT_DONE) {
    const unicon_status status = make(t, &in, stats, &plan);
    if (status != UNICON_OK)
      code = tool_fail(t, status);
    else if (!tool_has(t, CLI_OPT_JSON))
      code = print_plan(t, &in, plan);
    else if (!display_json(display_json_result(plan)))
      code = tool_out_of_memory(t);
  }
  unicon_result_destroy(plan);
  unicon_stats_destroy(stats);
  inputs_close(&in);
  return code;
}
