#!/usr/bin/env bash
# The same steps by verl and by TRL, both with vLLM, on one GPU: the same model, problems, seed, algorithm and judge.
#
#   MODEL=qwen-0.5b DATA=DATA/train-forged.jsonl.gz OUT=RESULTS bash benchmarks/gpu/verl.sh verl trl report
#   SIZE=toy MODEL=nano DATA=starter OUT=TRY bash benchmarks/gpu/verl.sh verl trl report      # on a CPU
#
#   verl     MicroCoder on verl: FSDP2 on one GPU, vLLM in the same process group, asleep during updates
#   trl      MicroCoder on TRL: vLLM in the trainer's process
#   graph    MicroCoder on TRL with its own sampler
#   report   reward, seconds and the mismatch of sampler and trainer, of all that are there
#
# PYTHON (verl, trl and graph have one each: VERL_PYTHON, TRL_PYTHON) is an environment with torch 2.11 and vLLM. verl 0.9.1
# asks for transformers below 5.11 and vLLM 0.24, so pip refuses newer ones; for a machine without a network that has them:
#
#   bash benchmarks/gpu/verl.sh wheels FOLDER       where there is a network: all that verl needs beside torch, vLLM and
#                                                   `microcoder[train]`, for Python 3.12 on x86_64, into FOLDER/1 and FOLDER/2,
#                                                   60 MB at most each
#   bash benchmarks/gpu/verl.sh install FOLDER      there, once both are in one FOLDER: into the environment of PYTHON
set -euo pipefail
cd "$(dirname "$0")/../.."
PYTHON=${PYTHON:-python} VERL_PYTHON=${VERL_PYTHON:-${PYTHON:-python}} TRL_PYTHON=${TRL_PYTHON:-${PYTHON:-python}}
STEPS=${STEPS:-20} SEED=${SEED:-0} LIMIT=${LIMIT:-512} PROBLEMS=${PROBLEMS:-32} MEMORY=${MEMORY:-0.3} SIZE=${SIZE:-full}
# verl, and what it imports that neither torch, vLLM nor microcoder[train] bring: 83 MB, of which ray is 79
WHEELS=(verl==0.9.1 ray==2.60.0 tensordict==0.10.0 TransferQueue==0.1.11 torchdata==0.11.0 hydra-core==1.3.8
        omegaconf==2.3.1 codetiming==1.4.0 pyvers==0.1.0 msgpack==1.2.4 importlib_metadata==10.2.0 zipp==4.1.2 orjson==3.13.0)
SOURCES=(antlr4-python3-runtime==4.9.3)  # has no wheel: made here, it is Python alone
PART=50000000

export PYTHONPATH="$PWD${PYTHONPATH:+:$PYTHONPATH}" RAY_USAGE_STATS_ENABLED=0
export VERL_USE_EXTERNAL_MODULES=microcoder.training.verl.plugin  # where the package is a folder and not installed

train() {  # NAME PYTHON, further settings
    local name=$1 python=$2
    shift 2
    common=(model.name="$MODEL" data.train="$DATA" data.test=none grpo.preset=microcoder grpo.temperature=1.0
            train.train_batch_size="$PROBLEMS" train.ppo_mini_batch_size=$((PROBLEMS / 2)) train.max_response_tokens="$LIMIT"
            train.lr=3e-6 train.seed="$SEED" train.save_every="$STEPS" judge.time_limit_s=2)
    [ "$SIZE" != toy ] || common+=(data.difficulty='[1,1]' data.train_size=12 grpo.samples=4 judge.workers=2)
    "$python" -m microcoder.cli train "${common[@]}" train.steps="$STEPS" train.folder="$OUT" train.name="$name" "$@"
}

if [ "$SIZE" = toy ]; then
    STEPS=2 PROBLEMS=2 LIMIT=48
    on_verl=(cluster.gpus_per_node=0 train.micro_batch_size=4)
    on_trl=(rollout.engine=auto) on_graph=(rollout.engine=auto)
else
    on_verl=(cluster.gpus_per_node=1 train.micro_batch_size=8 train.update=padded rollout.memory="$MEMORY")
    on_trl=(rollout.engine=vllm rollout.memory="$MEMORY") on_graph=(rollout.engine=graph rollout.memory="$MEMORY")
fi

while [ $# -gt 0 ]; do
    part=$1
    shift
    case $part in
    wheels)
        folder=${1:?wheels FOLDER}
        shift
        mkdir -p "$folder/1" "$folder/2"
        "$PYTHON" -m pip download -q --no-deps --only-binary=:all: --python-version 3.12 --implementation cp --abi cp312 --abi abi3 \
            --abi none --platform manylinux_2_28_x86_64 --platform manylinux_2_17_x86_64 --platform manylinux2014_x86_64 \
            --platform any -d "$folder/1" "${WHEELS[@]}"
        "$PYTHON" -m pip wheel -q --no-deps -w "$folder/1" "${SOURCES[@]}"
        ray=$(cd "$folder/1" && echo ray-*.whl)
        split -b "$PART" "$folder/1/$ray" "$folder/1/$ray.part."
        mv "$folder/1/$ray.part.ab" "$folder/2/"
        rm "$folder/1/$ray"
        du -sh "$folder"/[12] ;;
    install)
        folder=${1:?install FOLDER}
        shift
        for first in "$folder"/*.part.aa; do
            [ ! -e "$first" ] || cat "${first%aa}"* > "${first%.part.aa}"
        done
        "$VERL_PYTHON" -m pip install -q --no-index --no-deps "$folder"/*.whl
        VERL_LOGGING_LEVEL=ERROR "$VERL_PYTHON" -W ignore -c 'import ray, torch, transformers, verl, vllm
print("torch", torch.__version__, "transformers", transformers.__version__, "vllm", vllm.__version__, "ray", ray.__version__)' ;;
    verl) train verl "$VERL_PYTHON" run.engine=verl "${on_verl[@]}" ;;
    trl) train trl "$TRL_PYTHON" "${on_trl[@]}" ;;
    graph) train graph "$TRL_PYTHON" "${on_graph[@]}" ;;
    report)
        "$TRL_PYTHON" - "$OUT" <<'P'
import sys
from pathlib import Path

from microcoder.runs import read_metrics

COLUMNS = ("reward", "length_mean", "entropy", "mismatch_mean", "mismatch_ess", "generation_s", "judging_s", "update_s", "other_s", "step_s")
# the first step is left out: whatever is compiled or captured is so in it
print("means of all steps but the first;", "reward: of the first and of the last quarter")
print(f"{'run':8}{'steps':>7}" + "".join(f"{name:>15}" for name in COLUMNS))
for path in sorted(Path(sys.argv[1]).glob("*/metrics.jsonl")):
    lines = [line for line in read_metrics(path.parent) if "reward" in line]
    if not lines:
        continue
    cells, quarter = [], max(1, len(lines) // 4)
    for name in COLUMNS:
        values = [line[name] for line in lines[1:] or lines if line.get(name) is not None]
        cells.append(f"{sum(values) / len(values):.4g}" if values else "-")
    ends = [sum(line["reward"] for line in part) / len(part) for part in (lines[:quarter], lines[-quarter:])]
    cells[0] = f"{ends[0]:.3f} {ends[1]:.3f}"
    print(f"{path.parent.name:8}{len(lines):>7}" + "".join(f"{cell:>15}" for cell in cells))
P
        ;;
    *)
        echo "no part $part; there are: wheels, install, verl, trl, graph, report" >&2
        exit 2 ;;
    esac
done
