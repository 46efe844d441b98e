#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# unicon-mpi and bench_mpi on a machine that has neither MPI nor BLAS.
#   run_mpi.sh --collect         here: puts what a run needs into build/mpi-kit (BUILD=... for another
#                                build folder), which is then copied
#   run_mpi.sh [P [ARGUMENTS]]   there, in that folder: compares a fit and an eval of P processes
#                                (as many as cores) with those of one, then runs bench_mpi with the arguments
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)

# The libraries that programs and plugins need, but for those of the C library, which every Linux has.
libraries_of() {
  ldd "$@" 2>/dev/null | sed -n 's/.* => \(\/[^ ]*\) .*/\1/p' | sort -u |
    grep -Ev '/(libc|libm|libdl|libpthread|librt|libresolv|ld-linux[^/]*)\.so'
}

collect() {
  local build=${BUILD:-$here/../build} kit plugins launcher
  kit=$build/mpi-kit
  for program in unicon unicon-mpi bench/bench_mpi; do
    [ -x "$build/$program" ] || { echo "run_mpi.sh: there is no $build/$program; build it first" >&2; exit 1; }
  done
  plugins=$(ompi_info --path pkglibdir --parsable | sed 's/.*://')
  launcher=$(readlink -f "$(command -v mpirun)")
  rm -rf "$kit"
  mkdir -p "$kit/tree/bin" "$kit/tree/lib" "$kit/tree/plugins" "$kit/tree/share"
  cp "$build/unicon" "$build/unicon-mpi" "$build/bench/bench_mpi" "$kit/tree/bin"
  cp "$launcher" "$kit/tree/bin/mpirun"
  # One machine: no networks, batch systems or files of MPI.
  find "$plugins" -name 'mca_*.so' | grep -Ev \
    '/mca_(btl_(ofi|openib|usnic|uct)|mtl|pml_ucx|pml_cm|osc_ucx|spml|scoll|sshmem|memheap|atomic|io_|fs_|fbtl|fcoll|sharedfp|coll_hcoll|pmix_flux|schizo_(flux|jsm|slurm)|ess_slurm|plm_slurm|ras_)' |
    xargs -I{} cp {} "$kit/tree/plugins"
  libraries_of "$kit"/tree/bin/* "$kit"/tree/plugins/*.so | xargs -I{} cp -L {} "$kit/tree/lib"
  strip --strip-unneeded "$kit"/tree/lib/*.so* "$kit"/tree/bin/* 2>/dev/null || true
  cp -r /usr/share/openmpi "$kit/tree/share" 2>/dev/null || true
  tar -C "$kit/tree" -czf "$kit/tree.tar.gz" .
  rm -rf "$kit/tree"
  cp "$here/run_mpi.sh" "$kit"
  echo "$(du -sm "$kit" | cut -f1) MB in $kit"
}

# What Open MPI must be told away from home; MPI on one machine, by shared memory.
settle() {
  local tree=$1
  export LD_LIBRARY_PATH=$tree/lib PATH=$tree/bin:$PATH OPAL_PREFIX=$tree
  export OMPI_MCA_mca_base_component_path=$tree/plugins OMPI_MCA_mca_base_component_show_load_errors=0
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  export OMPI_MCA_btl=self,vader OMPI_MCA_pml=ob1 OMPI_MCA_plm=isolated OMPI_MCA_plm_rsh_agent=
  export OMPI_MCA_btl_vader_single_copy_mechanism=none # containers may forbid it
  export OMPI_MCA_btl_vader_backing_directory=$tree/tmp OMPI_MCA_orte_tmpdir_base=$tree/tmp
  export PMIX_MCA_gds=hash PMIX_MCA_pcompress_base_silence_warning=1 TMPDIR=$tree/tmp OPENBLAS_NUM_THREADS=1
  mkdir -p "$tree/tmp"
}

# several COMMAND...: in all processes.
several() { mpirun -n "$processes" --bind-to none --oversubscribe "$@"; }

# A fit and its figures by one process and by all.
check() {
  unicon synth nonlinear -o data --train 20000 --val 100 --test 4000 --dim-x 512 --dim-y 512 \
    --noise 0.6 >/dev/null
  local fit=(fit data/x.train.npy data/y.train.npy --preset fast --rank 128 -q)
  unicon "${fit[@]}" --threads 1 -o one.safetensors >/dev/null
  several unicon-mpi "${fit[@]}" -o all.safetensors >/dev/null
  for model in one all; do
    unicon eval "$model.safetensors" data/x.test.npy data/y.test.npy --json >$model.json
  done
  several unicon-mpi eval all.safetensors data/x.test.npy data/y.test.npy --json >again.json
  cmp all.json again.json && echo "eval: the same figures to the last digit"
  python3 - <<'PYTHON' 2>/dev/null || grep -o '"hit@1": [0-9.]*' one.json all.json
import json
one, many = (json.load(open(name + ".json"))["x_to_y"]["hit@1"] for name in ("one", "all"))
print(f"hit@1 of the model of one process {one:.4f}, of all {many:.4f}")
PYTHON
}

run() {
  processes=${1:-$(nproc)}
  [ $# -eq 0 ] || shift
  tree=$(mktemp -d)
  trap 'rm -rf "$tree"' EXIT
  tar -C "$tree" -xzf "$here/tree.tar.gz"
  settle "$tree"
  cd "$tree"
  check
  several bench_mpi "$@"
}

if [ "${1:-}" = --collect ]; then collect; else run "$@"; fi
