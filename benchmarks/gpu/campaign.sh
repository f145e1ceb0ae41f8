#!/usr/bin/env bash
# The comparison of algorithms with a real coding model, part by part, on one GPU:
#
#   MODEL=qwen-0.5b.gguf DATA=DATA OUT=RESULTS bash benchmarks/gpu/campaign.sh tried lr arms report
#
#   tried    which problems the model solves sometimes
#   lr       learning rates, with problems that the model solves sometimes and with all; one seed that is not used
#            again; the best on validation is taken
#   arms     the arms at one temperature, limit and learning rate, trained and scored on all suites
#   gates    whether a limit bites with STYLE=reason: what has to hold before masks are compared
#   report   tables, curves, claims
#
# DATA is what `prepare` and `forge` wrote. A part can be stopped and typed again: it goes on. BUDGET (seconds) ends a part
# by itself. All settings below can be set from outside. SIZE=toy MODEL=nano tries all of it on a CPU.
set -euo pipefail
: "${MODEL:?a model: a GGUF file, a folder or a hub id}" "${DATA:?the folder of prepare and forge}" "${OUT:?a folder for the results}"
STYLE=${STYLE:-code} LIMIT=${LIMIT:-512} TEMPERATURE=${TEMPERATURE:-1.0}
BATCH=${BATCH:-32}           # problems a step, two updates
STEPS=${STEPS:-100} SEEDS=${SEEDS:-0 1 2} ARMS=${ARMS:-grpo_plus grpo microcoder dapo-equal examples}
RATES=${RATES-5e-7 1e-6} RATES_ALL=${RATES_ALL-1e-6 2e-6} RATE_STEPS=${RATE_STEPS:-$STEPS}
EVERY=${EVERY:-10}           # steps between evaluations
SAVE_EVERY=${SAVE_EVERY:-$EVERY}  # between checkpoints, 6 GB each for 0.5B; more steps cost less time, and more is lost when a run is stopped
SUITES=${SUITES:-test humanevalplus mbppplus livecodebench} SCORED_AT=${SCORED_AT:-$LIMIT}
TOGETHER=${TOGETHER:-4} WORKERS=${WORKERS:-4} CORES=${CORES:-$(nproc)} BUDGET=${BUDGET:-inf} SIZE=${SIZE:-full}
MEMORY=${MEMORY:-0.04}       # of the GPU for keys and values, of each run
PASS_TOKENS=${PASS_TOKENS:-4096}  # 8192 takes 28 GB for 0.5B
PYTHON=${PYTHON:-python}
# About as many sampled tokens as the others have in STEPS steps. dapo samples twice as many responses where half of the groups
# have no signal; with two turns nearly every response has a second try.
DAPO_STEPS=${DAPO_STEPS:-$((STEPS / 2))} TURN_STEPS=${TURN_STEPS:-$((STEPS * 11 / 20))}

common=(data.style="$STYLE" grpo.temperature="$TEMPERATURE" train.max_response_tokens="$LIMIT"
        train.train_batch_size="$BATCH" train.ppo_mini_batch_size=$((BATCH / 2)) train.pass_tokens="$PASS_TOKENS" rollout.memory="$MEMORY"
        train.save_every="$SAVE_EVERY" data.test="$DATA/validation-forged.jsonl.gz"
        judge.reuse=true)  # all tests of a program in one process: 0.7 of the CPU time; scores are without it
tries=16
if [ "$SIZE" = toy ]; then
    tries=4 STEPS=${TOY_STEPS:-2} RATE_STEPS=2 DAPO_STEPS=2 TURN_STEPS=2 SEEDS="0 1" EVERY=1 LIMIT=64 SCORED_AT=24
    common+=(train.train_batch_size=2 train.ppo_mini_batch_size=2 train.max_response_tokens=64 grpo.samples=4
             train.update=auto train.micro_batch_size=4 data.test_size=4 train.eval_tries=1)
fi

arms_run() {  # FOLDER, further words of `arms run`
    local folder=$1
    shift
    "$PYTHON" -m benchmarks.gpu arms run --model "$MODEL" --data "$DATA" --out "$folder" --together "$TOGETHER" \
        --judge-workers "$WORKERS" --budget "$BUDGET" --limits $SCORED_AT --drop-weights --size "$SIZE" "$@"
}

for part in "$@"; do
    case $part in
    tried)
        "$PYTHON" -m microcoder.cli eval "$MODEL" --suite "$DATA/train-forged.jsonl.gz" -n "$tries" --style "$STYLE" \
            --temperature "$TEMPERATURE" --limit "$LIMIT" -o "$OUT/tried" judge.workers="$CORES" judge.reuse=true rollout.memory=0.3 ;;
    lr)
        arms=()
        for rate in $RATES; do
            arms+=("sometimes-$rate=grpo_plus train.lr=$rate data.tried=$OUT/tried")
        done
        for rate in $RATES_ALL; do
            arms+=("all-$rate=grpo_plus train.lr=$rate")
        done
        arms_run "$OUT/lr" --arms "${arms[@]}" --seeds 9 --steps "$RATE_STEPS" --every "$EVERY" --suites --set "${common[@]}"
        "$PYTHON" -m benchmarks.gpu arms choose --out "$OUT/lr" > "$OUT/lr/chosen"
        cat "$OUT/lr/chosen" ;;
    arms)
        chosen=(data.tried="$OUT/tried")
        [ ! -e "$OUT/lr/chosen" ] || read -ra chosen < "$OUT/lr/chosen"
        arms=()
        for arm in $ARMS; do
            case $arm in
            dapo-equal) arms+=("dapo-equal=dapo train.steps=$DAPO_STEPS") ;;
            two-turns) arms+=("two-turns=grpo_plus grpo.turns=2 train.steps=$TURN_STEPS") ;;  # a failed try is told why, and followed by another
            *) arms+=("$arm") ;;
            esac
        done
        arms_run "$OUT" --arms "${arms[@]}" --seeds $SEEDS --steps "$STEPS" --every "$EVERY" --suites $SUITES \
            --set "${common[@]}" "${chosen[@]}" ;;
    gates)
        "$PYTHON" -m microcoder.cli eval "$MODEL" --suite "$DATA/validation-forged.jsonl.gz" -n "$tries" --style "$STYLE" \
            --temperature "$TEMPERATURE" --limit "$((LIMIT / 2)),$LIMIT,$((2 * LIMIT))" -o "$OUT/gates" judge.workers="$CORES" rollout.memory=0.3
        "$PYTHON" -m benchmarks.gpu gates "$OUT/gates" ;;
    report)
        "$PYTHON" -m benchmarks.gpu arms report --out "$OUT" --data "$DATA" ;;
    *)
        echo "no part is named $part; there are: tried lr arms gates report" >&2
        exit 2 ;;
    esac
done
