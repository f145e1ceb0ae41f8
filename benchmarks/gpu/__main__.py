from benchmarks.entry import run

if __name__ == "__main__":
    run(
        "benchmarks.gpu",
        "prepare",
        "forge",
        "arms",
        "scores",
        "sample",
        "packed",
        "gamed",
        "step",
        "engines",
        "shape",
        "memory",
        "attention",
        "tokens",
        "gates",
        stopped="stopped; the same command goes on with what is left",
    )
