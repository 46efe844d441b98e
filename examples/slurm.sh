#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A fit over shards on a Slurm cluster: each task of an array sums its shard, the last job merges the
# sums and fits. Shard k is image/k.npy and text/k.npy.
#
#     parts=$(sbatch --parsable --array=0-15 --cpus-per-task=8 slurm.sh sum)
#     sbatch --dependency=afterok:$parts slurm.sh fit
#
# UNICON is the command (unicon). A task that fails leaves no part behind, and the last job then does
# not start; run the array again for the numbers that are missing.
set -euo pipefail
unicon=${UNICON:-unicon}
mkdir -p parts
case $1 in
  sum)
    k=$SLURM_ARRAY_TASK_ID
    "$unicon" stats "image/$k.npy" "text/$k.npy" --threads "${SLURM_CPUS_PER_TASK:-1}" -o "parts/$k.stats"
    ;;
  fit)
    "$unicon" merge parts/*.stats -o all.stats
    "$unicon" fit --from all.stats -o model.safetensors
    ;;
esac
