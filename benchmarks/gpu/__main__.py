from benchmarks.entry import run

if __name__ == "__main__":
    run(
        "benchmarks.gpu",
        "prepare",
        "qwen",
        "sample",
        "rewards",
        "packed",
        stopped="stopped; the same command goes on with what is left",
    )
