#!/usr/bin/env bash
# Half an hour of one GPU of 141 GB on a machine without a network, used to the end: the 1.5B where the limit bites, and
# whatever else fits beside it. Each part waits for its files:
#
#   for part in install small engines verl main; do
#       ROOT=FOLDER setsid nohup bash benchmarks/gpu/half_hour.sh $part > /dev/null &
#   done
#   ROOT=FOLDER bash benchmarks/gpu/half_hour.sh pack RESULTS
#
#   install   ROOT/env from ROOT/bundle (TRL and what it needs), ROOT/envv: a copy with vLLM from ROOT/vb
#   small     the truncation study of testbed-small on the CPU cores that the judge leaves: ROOT/bed/model is its model
#   engines   SIDE_STEPS steps of SIDE_MODEL by each sampler, and FSDP2 in a world of one
#   verl      the same by verl with vLLM; its wheels come in ROOT/verlw
#   forge     ROOT/data/train-forged.jsonl.gz from ROOT/data/problems.parquet (which `prepare` leaves in pipeline/out/dataset),
#             while other files travel: minutes on 16 cores, half an hour on two
#   base      the scores of the untrained model while tests are forged: main and arms find them
#   main      ROOT/w/part.* joined are the model, ROOT/data is what `prepare` and `forge` wrote; ROOT/end holds the time
#             (seconds since 1970) at which all must be packed. REST seconds before it all arms end with one common step,
#             so that they are alike, and are scored. Two runs of 1.5B fit: each takes 54 to 56 GiB where the plan says 42
#   arms      in the place of main: runs of STEPS steps, two at a time, as many as can end and be scored before ROOT/end.
#             Gains come within 25 steps, so this is how several seeds of an arm fit into half an hour:
#                 STYLE=code LIMIT=1024 SCORED_AT=1024 BATCH=64 RATE=3e-6 STEPS=24 EVERY=8 SEEDS="0 1" half_hour.sh arms
#   pack      what came of all of it, as files of at most 15 MB
#
# ROOT/ok/NAME says that files are complete (bundle, vllm, verl, data, weights; forged, where ROOT/data brings them forged);
# logs are in ROOT/log.
set -uo pipefail
cd "$(dirname "$0")/../.."
ROOT=${ROOT:-$HOME} REST=${REST:-280} INTO=${INTO:-/dev/shm/out}
ARMS=${ARMS:-grpo_plus microcoder} SEEDS=${SEEDS:-0} RATE=${RATE:-2e-6} BATCH=${BATCH:-32} STYLE=${STYLE:-reason} LIMIT=${LIMIT:-640}
SCORED_AT=${SCORED_AT:-640 1280} STEPS=${STEPS:-100} EVERY=${EVERY:-20} TOGETHER=${TOGETHER:-2} WORKERS=${WORKERS:-6} MEMORY=${MEMORY:-0.05}
FORGE_TOGETHER=${FORGE_TOGETHER:-7} SMALL_SEEDS=${SMALL_SEEDS:-6} FIRST_SEED=${FIRST_SEED:-2} SMALL_TOGETHER=${SMALL_TOGETHER:-6}
SUITES=${SUITES:-test humanevalplus mbppplus livecodebench} SIZE=${SIZE:-full}
SIDE_MODEL=${SIDE_MODEL:-$ROOT/smollm2} SIDE_DATA=${SIDE_DATA:-$ROOT/data/mbpp-train.jsonl.gz}
SIDE_STEPS=${SIDE_STEPS:-4} SIDE_PROBLEMS=${SIDE_PROBLEMS:-16} SIDE_LIMIT=${SIDE_LIMIT:-256}
ENGINES=${ENGINES:-colocate server fsdp replicated server-ahead graph} NAME=${NAME:-engines}
export PYTHONPATH=$PWD PYTHONUNBUFFERED=1
mkdir -p "$ROOT/ok" "$ROOT/log"

said() { echo "$(date +%T) $*" >> "$ROOT/log/said"; }
until_there() { while [ ! -e "$ROOT/ok/$1" ]; do sleep 0.5; done; }
joined() {  # the model's parts
    [ -n "${MODEL:-}" ] || [ -e "$ROOT/model.gguf" ] || { cat "$ROOT"/w/part.* > "$ROOT/model.new" && mv "$ROOT/model.new" "$ROOT/model.gguf"; }
    [ -n "${MODEL:-}" ] || sha256sum "$ROOT/model.gguf" >> "$ROOT/log/said"
    MODEL=${MODEL:-$ROOT/model.gguf}
}
left() { echo $(($(cat "$ROOT/end") - $(date +%s))); }

one_step() {  # ends all trainings after the same step, the first that all can still reach; prints it
    "$ROOT/env/bin/python" - "$INTO" <<'P'
import os, signal, sys, time
from pathlib import Path
from microcoder.runs import read_metrics

def step(run):
    return max((line["step"] for line in read_metrics(run)), default=0)

def trainings():  # run -> the process that trains it
    found = {}
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().decode().split("\0")
        except OSError:
            continue
        names = [word.removeprefix("train.name=") for word in words if word.startswith("train.name=")]
        if "microcoder.cli" in words and names:
            run, process = Path(sys.argv[1]) / "runs" / names[0], int(path.parent.name)
            found[run] = min(process, found.get(run, process))  # what it has forked came later
    return found

running = trainings()
last = max(map(step, running)) + 2
while running:
    for run, process in list(running.items()):
        if not Path(f"/proc/{process}").exists():
            running.pop(run)
        elif step(run) >= last - 1:  # the step under way is the last
            running.pop(run)
            os.kill(process, signal.SIGTERM)
    time.sleep(0.2)
print(last)
P
}

for part in "$@"; do
    [ "$part" != "${target:-}" ] || continue
    said "$part begins"
    case $part in
    install)
        until_there bundle
        bash "$ROOT/bundle/install.sh" "$ROOT/env" > "$ROOT/log/install.log" 2>&1 || said "install FAILED"
        cp -r "$ROOT/env" "$ROOT/envv"
        touch "$ROOT/ok/env"
        until_there vllm
        bash "$ROOT/vb/install.sh" "$ROOT/vb" "$ROOT/envv" > "$ROOT/log/vllm.log" 2>&1 || said "vllm FAILED"
        touch "$ROOT/ok/envv" ;;
    small)
        until_there env
        export CUDA_VISIBLE_DEVICES=
        mkdir -p "$ROOT/small/testbed-small"
        cp -r "$ROOT/bed" "$ROOT/small/testbed-small/"
        "$ROOT/env/bin/python" -m benchmarks.testbed tasks --out "$ROOT/small/testbed-small/bed" --most 8 > "$ROOT/log/small.log" 2>&1
        taskset -c "0-$((SMALL_TOGETHER - 1))" nice -n 19 "$ROOT/env/bin/python" -m microcoder.cli study run benchmarks/testbed/truncation.toml --scale testbed-small \
            --first-seed "$FIRST_SEED" --seeds "$SMALL_SEEDS" --together "$SMALL_TOGETHER" --out "$ROOT/small" >> "$ROOT/log/small.log" 2>&1 ;;
    engines)
        until_there envv
        [ ! -e "$ROOT/ok/alone" ] || continue
        echo $$ >> "$ROOT/ok/beside"
        "$ROOT/envv/bin/python" -m benchmarks.gpu engines --model "$SIDE_MODEL" --data "$SIDE_DATA" --out "$ROOT/side/$NAME" \
            --json "$ROOT/side/$NAME.json" --arms $ENGINES \
            --steps "$SIDE_STEPS" --layout-steps 4 --problems "$SIDE_PROBLEMS" --limit "$SIDE_LIMIT" --budget 150 > "$ROOT/log/$NAME.log" 2>&1 ;;
    verl)
        until_there envv
        until_there verl
        [ ! -e "$ROOT/ok/alone" ] || continue
        echo $$ >> "$ROOT/ok/beside"
        export MODEL=$SIDE_MODEL DATA=$SIDE_DATA VERL_PYTHON=$ROOT/envv/bin/python TRL_PYTHON=$ROOT/env/bin/python
        bash benchmarks/gpu/verl.sh install "$ROOT/verlw" > "$ROOT/log/verl.log" 2>&1
        for arm in verl graph trl; do
            [ ! -e "$ROOT/ok/alone" ] || continue
            [ $arm != trl ] || TRL_PYTHON=$ROOT/envv/bin/python
            OUT=$ROOT/side/verl STEPS=$SIDE_STEPS PROBLEMS=$SIDE_PROBLEMS LIMIT=$SIDE_LIMIT timeout -s TERM 240 bash benchmarks/gpu/verl.sh $arm >> "$ROOT/log/verl.log" 2>&1
            said "verl.sh $arm: exit status $?"
        done
        OUT=$ROOT/side/verl bash benchmarks/gpu/verl.sh report >> "$ROOT/log/verl.log" 2>&1 ;;
    forge)
        until_there env
        until_there data
        nice -n 5 "$ROOT/env/bin/python" -m benchmarks.gpu forge --problems "$ROOT/data/problems.parquet" --data "$ROOT/data" \
            --together "$FORGE_TOGETHER" > "$ROOT/log/forge.log" 2>&1 && touch "$ROOT/ok/forged" || said "forge FAILED" ;;
    base)
        touch "$ROOT/ok/base-begun"
        until_there env
        until_there data
        until_there weights
        joined
        "$ROOT/env/bin/python" -m benchmarks.gpu scores --models base="$MODEL" --data "$ROOT/data" --out "$INTO/bench" --suites $SUITES \
            --limits $SCORED_AT --style "$STYLE" --judge-workers "$WORKERS" --size "$SIZE" > "$ROOT/log/base.log" 2>&1 || said "base FAILED"
        rm "$ROOT/ok/base-begun" ;;
    main | arms)
        until_there env
        until_there weights
        until_there forged
        while [ -e "$ROOT/ok/base-begun" ]; do sleep 0.5; done
        joined
        export MODEL DATA=$ROOT/data OUT=$INTO PYTHON=$ROOT/env/bin/python
        export STYLE LIMIT SCORED_AT STEPS TOY_STEPS SEEDS ARMS SUITES SIZE TOGETHER WORKERS EVERY MEMORY BATCH SAVE_EVERY=1000000
        mkdir -p "$INTO/lr"
        echo "train.lr=$RATE" > "$INTO/lr/chosen"
        if [ "${MPS:-yes}" = yes ] && nvidia-cuda-mps-control -d >> "$ROOT/log/mps.log" 2>&1; then  # kernels of several runs at a time
            "$PYTHON" -c 'import torch; print("MPS:", torch.ones(9).cuda().sum().item())' >> "$ROOT/log/mps.log" 2>&1 ||
                { echo quit | nvidia-cuda-mps-control; said "MPS FAILED"; }
        fi
        touch "$ROOT/ok/alone"  # the parts beside it have had the GPU until now
        for beside in $(cat "$ROOT/ok/beside" 2> /dev/null); do kill -- "-$beside" 2> /dev/null; done
        pkill -9 -x raylet
        pkill -9 -x gcs_server
        if [ "$part" = main ]; then
            bash benchmarks/gpu/campaign.sh arms > "$ROOT/log/main.log" 2>&1 &
            sleep $(($(left) - REST))
            STEPS=$(one_step) TOY_STEPS=$STEPS
            wait $!
            said "all have made $STEPS steps, $(left) s before the end"
        fi
        BUDGET=$(($(left) - 45)) bash benchmarks/gpu/campaign.sh arms >> "$ROOT/log/main.log" 2>&1
        touch "$ROOT/ok/main" ;;
    pack)
        target=${2:?pack FOLDER}
        "$ROOT/env/bin/python" -m benchmarks.gpu arms pack --out "$INTO" --to "$target" --rollouts 6
        tar cJf "$target/small.tar.xz" -C "$ROOT" --exclude=checkpoints --exclude='*.safetensors' --exclude=bed small log
        tar cJf "$target/side.tar.xz" -C "$ROOT" --exclude=checkpoints --exclude='*.safetensors' --exclude='*.pt' --exclude=untied side 2> /dev/null
        ls -l "$target" ;;
    *)
        echo "no part is named $part; there are: install small engines verl forge base main arms pack" >&2
        exit 2 ;;
    esac
    said "$part ends"
done
