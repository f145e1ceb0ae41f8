#!/usr/bin/env bash
# Samplers side by side on one GPU: graph, vLLM in the process, a vLLM server on the same GPU, each also one step ahead;
# and FSDP2 in a world of one beside one process. Results are written as they come.
#
#   MODEL=qwen-0.5b DATA=train.jsonl.gz OUT=DIR bash benchmarks/gpu/engines.sh [--json FILE] [further words of `engines`]
#   SIZE=toy MODEL=nano OUT=DIR PYTHON=.venv-vllm/bin/python bash benchmarks/gpu/engines.sh          # on a CPU, after make test-vllm
#
# It takes one GPU and `microcoder[train]`; the arms of vLLM need vllm (written against 0.26) in the same environment.
set -euo pipefail
: "${MODEL:?a model: a folder or a hub id}" "${OUT:?a folder for the results}"
DATA=${DATA:-starter} SIZE=${SIZE:-full} PYTHON=${PYTHON:-python} STEPS=${STEPS:-20} LAYOUT_STEPS=${LAYOUT_STEPS:-4}
words=(--model "$MODEL" --data "$DATA" --out "$OUT" --steps "$STEPS" --layout-steps "$LAYOUT_STEPS")
if [ "$SIZE" = toy ]; then
    words=(--model "$MODEL" --data "$DATA" --out "$OUT" --steps 2 --layout-steps 2 --problems 2 --samples 4 --limit 24
           --set "data.difficulty=[1,1]" data.train_size=12 judge.workers=2 train.lr=1e-4)
fi
mkdir -p "$OUT"
exec "$PYTHON" -m benchmarks.gpu engines "${words[@]}" --json "$OUT/engines.json" "$@"
