#!/usr/bin/env bash
# The studies of the testbed, part by part, on one GPU:
#
#   OUT=RESULTS bash benchmarks/testbed/campaign.sh pretrain measure studies report
#
#   pretrain   a model of 8 M parameters with 15% of traces, and its problems, in OUT/studies/testbed/bed
#   measure    styles, accuracy by k, and whether the gates hold, before any training
#   studies    the truncation mask, then the limit, temperature, KL and clip, data, batch, algorithms
#   report     verdicts and figures
#   pack       OUT/results.tar.xz.NN of at most 15 MB, without weights and responses: `cat` joins them, and `report` reads them
#
# A part can be stopped and typed again: it goes on. BUDGET (seconds) ends `studies` by itself. SIZE=tiny with MOST=8 and
# STEPS=4 tries all of it on a CPU.
set -euo pipefail
: "${OUT:?a folder for the results}"
SIZE=${SIZE:-8m} MOST=${MOST:-16} TRACE=${TRACE:-0.15} MINUTES=${MINUTES:-}
SEEDS=${SEEDS:-8} FIRST_SEED=${FIRST_SEED:-0} TOGETHER=${TOGETHER:-8} BUDGET=${BUDGET:-} STEPS=${STEPS:-}
STUDIES=${STUDIES:-benchmarks/testbed/truncation.toml context temperature kl_clip data batch algorithms}
PYTHON=${PYTHON:-python}
studies=$OUT/studies bed=$OUT/studies/testbed/bed

for part in "$@"; do
    case $part in
    pretrain)
        "$PYTHON" -m benchmarks.testbed pretrain --out "$bed" --size "$SIZE" --most "$MOST" --trace "$TRACE" ${MINUTES:+--minutes "$MINUTES"} ;;
    measure)
        "$PYTHON" -m benchmarks.testbed measure "$bed/model" --problems "$bed/test.jsonl" --limit 112 ;;
    studies)
        if command -v nvidia-cuda-mps-control > /dev/null; then  # kernels of several runs at a time
            nvidia-cuda-mps-control -d || true  # it may be running
            "$PYTHON" -c 'import torch; print("MPS:", torch.ones(9).cuda().sum().item())' || { echo quit | nvidia-cuda-mps-control; }
        fi
        "$PYTHON" -m microcoder.cli study run $STUDIES --scale testbed --out "$studies" --seeds "$SEEDS" --first-seed "$FIRST_SEED" \
            --together "$TOGETHER" ${BUDGET:+--stop-after "$BUDGET"} \
            ${STEPS:+train.steps="$STEPS" train.train_batch_size=4 train.ppo_mini_batch_size=4} ;;
    report)
        "$PYTHON" -m microcoder.cli study report "$studies" ;;
    pack)
        tar cJf - -C "$OUT" --exclude=checkpoints --exclude=rollouts --exclude='bed/*.jsonl' --exclude='*.safetensors' \
            --exclude='*.png' studies | split -b 15000000 -d - "$OUT/results.tar.xz."
        ls -l "$OUT"/results.tar.xz.* ;;
    *)
        echo "no part is named $part; there are: pretrain measure studies report pack" >&2
        exit 2 ;;
    esac
done
